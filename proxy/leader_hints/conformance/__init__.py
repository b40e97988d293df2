"""What a client does with hints, observed in front of a cluster whose leaders are moved.

Bugs about `leader-hints conformance` and the pytest plugin's Lab are here.

- traits: what a client did, judged from the messages that were seen; wire_log: those messages.
  These two are pure.
- scenarios: what is done to the cluster meanwhile; trial: a client in one of them; client_process:
  the command that runs it.
- wire_recorder: records them; lab: a virtual cluster in a thread, for tests.
- standing_cluster: moves leaders of a cluster that was there before.
"""
