"""The documentation: pages generated from the code, the built site, and the README's commands."""
