"""What can be seen from outside: events and counts as logs, metrics and a status.

Nouns:

- Counts: what events add up to since the start; History: what happened in the last hour.
- ClientNames: client software as labels, within bounds that no client can break.
- Watched: all that metrics and status are made of when somebody asks for them.
- Metrics: Prometheus metrics; Status: one JSON document; page: HTML that shows the status.
- EventLog: turns each event of :mod:`leader_hints.core.events` into one log line. LeaderStorm:
  which leader moves are summed up in one. Summary: what a minute added.
- Journal: turns events into the journal's numbered lines; Column: one of those they can have.
- JournalTally: how many of them were written and dropped.
- LineWriter: where finished lines go; a reader that has gone stops nothing.

Nothing here is asked for a decision, and nothing here does I/O but the LineWriter, and the page,
which is read once from the package.
"""
