"""A fleet and an event from a journal.

Bugs about what is taken from a journal, or laid over it, are here.

- from_journal: a fleet and an event from a journal's tables.
- assumed: what no journal has, as a file gives it.
"""
