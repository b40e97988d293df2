"""Journals as they are read: their format, where they come from, and whether they are complete.

Bugs about lines that are refused, doubled or missing are here.

- format: the columns of a line; events: lines that are understood, and those that are not;
  plain_lines: those that DuckDB reads in place of Spark.
- sources: files or a topic; files: file systems of Hadoop; runs: sequence numbers and gaps.
"""
