"""Benchmarks before real brokers; their tables and plots go to docs/.

Nouns:

- Arm: one of the things that are compared: brokers, and a proxy with or without hints or none.
- Stall: the longest latency that a client had because of one leader move.
- Sample: the stalls and hints of one round of an arm; Pool: those of all rounds.
- FakeCluster: a hundred brokers that tell leaders and hold no records; Layout: what they believe.
- Steps: how long each task keeps the event loop of a proxy to itself.
- LateMetadata: a relay in which answers to Metadata take long.
- Share: the part of a process's time that it spends on one thing.
- Section: the part of docs/benchmarks.md that one benchmark writes.
"""
