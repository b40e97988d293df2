"""The closest replica."""
