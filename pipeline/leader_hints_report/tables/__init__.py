"""The tables, from events.

Bugs about a wrong figure in a table are here.

- columns: columns, types, units and meanings of all tables; plan: how all of them are made.
- moves, recoveries, incidents, hints, hours, latencies, racks: one table or group of tables each.
- asked: which versions clients ask.
- uses: which hints clients use, so which of those that they got count.
- routes: to which cluster and broker a route leads that the sidecar did not know yet.
- skew: how far the clocks of sidecars are apart; clock_pairs: the same by errors and successes.
"""
