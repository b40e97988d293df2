"""Decisions: what passes, what is changed, which hint is given and when; pure.

Bugs about routes, modes, limits on clients and descriptors are in this folder itself:

- route: a listening address and the one broker behind it; broker_state: what is known of that
  broker; mode: what a route does about hints.
- destination: where the address leads that a broker advertises, as far as that is proved.
- admission: whether one more client is let in; descriptors: for how many connections they last.
- events: what happened, as data; clock: where the time comes from.
- partition_bits: sets of a topic's partitions.

Its folders: link (bytes of one connection), responses (what becomes of each), versions (what is
offered and sent), hints (which hint an error gets, and when), cluster (what is known of leaders and
brokers), sessions (fetch sessions), workers (what worker processes and the one that decides say).

Nothing here reads a clock of the machine: the time is an argument, in seconds of a Clock that never
goes back. LatencySampler, Recovery and LeaderView are given that Clock itself, to ask it only where
something is sampled, awaited or has moved.
"""
