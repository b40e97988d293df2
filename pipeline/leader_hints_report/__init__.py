"""What leader moves cost a fleet, and what hints save: the journals of many sidecars, on Spark.

Bugs about a run that fails, or reads a journal twice, are here. Those about what is stored are in
store, about lines in journal, about figures in tables, about the page in report, about answers to
questions in query, about options in commands; those about synthetic journals are in generator,
those about forecasts in simulation.

- batch: one run over what is new; streaming: the same while journals are written.
- store: events and tables of an output folder, and which inputs they come from.
- lost_records: records of a topic that were removed before they were read.
- lock: one run at a time in an output folder.
- little_work: whether a command has little to do, which Spark's settings go by.
- spark_session: Spark's settings and flags; spark_messages: what it writes as it starts.
- progress: the present step, on a terminal.
- cli: the command; journal_options: the options of subcommands that take in a journal.
- errors: those that an operator can fix; text: foreign text, made safe to show.

Nouns:

- Event: a line of the journal that was understood; Quarantined: one that was not, and why.
- Encounter: an error or a success of a client at a partition; its payload is what else it says.
- Episode: a client's errors at a partition, until a success or until it was quiet for a while.
- Sighting: a leader move as one sidecar saw it; Move: one leader epoch, as all sidecars saw it.
- Recovery: from a client's first error to its first success, at any sidecar.
- Incident: moves of a cluster that belong together; its rules distinguish a roll from a failure.
- Skew: how far a sidecar's clock is from those of the others.
- Table: what is written; :mod:`leader_hints_report.tables.columns` has the columns and meanings of
  all.

Functions go from DataFrame to DataFrame or from Column to Column, and take the Spark session as an
argument where they need one. None depends on the session's time zone, and there is no Python code
between rows: all of it is Spark's own expressions.

The pipeline and the proxy do not import each other: they share only the journal's format,
docs/journal.schema.json. The one exception is :mod:`leader_hints_report.simulation.core_rules`,
which calls the proxy's rules to hold the model against them.
"""
