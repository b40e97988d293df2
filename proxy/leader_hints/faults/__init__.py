"""Faults on demand, for tests of clients: `leader-hints local --allow-faults`.

Bugs about a fault that has no effect, or a wrong one, are here.

- fault: what is done to whom; scenario: faults by the clock; session_partitions: what a fetch
  session is about; refusal, stale_metadata: answers that no broker gave. These are pure.
- interposer: makes the faults, frame by frame; injector: all that a process has for faults;
  fault_pages: their pages on the admin server.
"""
