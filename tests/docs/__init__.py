"""The documentation: pages made of the code, the built site, and the README's commands."""
