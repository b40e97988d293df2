"""The journal's way to files or a topic.

Bugs about lines that are lost, doubled or late are here; what a line says is in observe/journal.

- journal_opening: opens what the settings ask for; journal_writer: writes lines, many at a time;
  line_buffer: lines that wait for it; sink: where it writes.
- journal_files: lines in files, their rotation and repair; journal_topic: lines in a Kafka topic.
"""
