"""Synthetic journals of a fleet, with the answers that the tables must give.

Clusters of six brokers, a sidecar in front of each, go through rolls, reassignments, failures and
the elections after them, one each half hour. Clients of several softwares meet errors at the
brokers that were left and recover at those that were joined. One sidecar of each cluster only
counts hints, unless all of them do, or none. Some errors of clients without hints wait for
Metadata. Some clients get hints that they do not
use. Some consumers name a rack. Sidecars' clocks are wrong by a few milliseconds; some lines
come twice, some were dropped and reported as gaps, some are torn.

All of it follows from the seed. It is made by Spark, so that it may be large.

Bugs about synthetic lines, or answers that do not fit them, are here.

- generation: from a fleet to its files; fleet: what to make, and columns that all parts use.
- moves: leader epochs; episodes: what clients meet at them; reads: what consumers read that name a
  rack; lines: events of moves and episodes, and the rest.
- journals: events as numbered lines in files; answers: what the tables must give.
"""
