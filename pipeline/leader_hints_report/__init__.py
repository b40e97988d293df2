"""What leader moves cost a fleet, and what hints save: the journals of many sidecars, on Spark.

Nouns:

- Event: a line of the journal that was understood; Quarantined: one that was not, and why.
- Encounter: what one client met at one partition, errors and successes, while it was not quiet.
- Sighting: a leader move as one sidecar saw it; Move: one leader epoch, as all sidecars saw it.
- Recovery: from a client's first error to its first success, at any sidecar.
- Incident: moves of a cluster that belong together; its rules tell a roll from a failure.
- Skew: how far a sidecar's clock is from those of the others.
- Store: the events and tables of an output folder, and which inputs they are made of.
- Table: what is written; :mod:`leader_hints_report.tables.columns` has the columns and meanings of
  all.

Functions go from DataFrame to DataFrame or from Column to Column, and take the Spark session as an
argument where they need one. None depends on the session's time zone, and there is no Python code
between rows: all of it is Spark's own expressions.

Nothing here imports the proxy, nor the proxy anything of this: what joins them is the journal's
format, docs/journal.schema.json.
"""
