"""Faults on demand, for tests of clients: `leader-hints local --allow-faults`.

Bugs about a fault that has no effect, or a wrong one, are here.

- fault: what is done to whom; scenario: faults that begin and end at given times, as they are
  written; problems: what is wrong with one of them; session_partitions: what a fetch session is
  about; refusal, stale_metadata: answers that no broker gave. These are pure.
- interposer: stands between a client and its link, frame by frame (frames); asking: a request
  there. request_faults, response_faults: what is done to each; chosen_faults: which of the faults
  in force that is.
- injector: all that a process has for faults; it plays the scenario. fault_pages: their pages on
  the admin server.
"""
