"""The journal's way to files or a topic.

Bugs about lines that are lost, doubled or late are here; what a line says is in observe/journal.
"""
