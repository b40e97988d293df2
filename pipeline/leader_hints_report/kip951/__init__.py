"""The tables of KIP-951's benchmarks: those that were published, and the same from own samples.

Bugs about a figure of `leader-hints-report kip951` are here.

- samples: the time from sending a record to its acknowledgement, and the runs of one arm.
- run_figures: the line that kafka-producer-perf-test prints at the end of a run, as numbers.
- published: the KIP's own figures, and whether their arithmetic is right.
- comparison: runs of all arms side by side, their averages, and the changes to a baseline.
- document: the same as JSON, as CSV and as Markdown.

An arm is one of the setups that are compared.
"""
