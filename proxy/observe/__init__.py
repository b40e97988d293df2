"""What can be seen from outside: events and counts as logs and metrics.

Nouns:

- EventLog: turns each event of :mod:`proxy.core.events` into one log line.
- Metrics: turns events, and the tallies of the routes, into Prometheus metrics.
- Journal: turns events into the journal's numbered lines; Column: one of those they can have.
- JournalTally: how many of them were written and dropped.
- LineWriter: where finished lines go; a reader that has gone stops nothing.

Nothing here is asked for a decision, and nothing here does I/O but the LineWriter.
"""
