"""The tables of KIP-951's benchmarks: those that were published, and the same from own samples.

Nouns:

- Sample: one record that a producer sent in a benchmark, and the time to its acknowledgement.
- Run: the samples of one arm from its first record to its last; Arm: what is compared.
- RunFigures: the line that kafka-producer-perf-test prints at the end of a run, as numbers.
- Published: the KIP's own figures; Check: one of them worked out again.
- Comparison: runs of all arms side by side, their averages, and the changes to a baseline.
"""
