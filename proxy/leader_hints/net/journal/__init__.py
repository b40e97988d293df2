"""The journal's way to files or a topic.

Bugs about lines that are lost, doubled or late are here; what a line says is in observe/journal.

- journal_opening: opens what the settings ask for; journal_writer: hands lines on, and never waits.
- journal_files: lines in files, their rotation and repair; journal_topic: lines in a Kafka topic.
"""
