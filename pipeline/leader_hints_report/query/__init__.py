"""An operator's own questions, in SQL, to what is stored in an output folder.

Bugs about an answer to `leader-hints-report query`, and how it is written, are here.

- answer: Answer, columns and rows, and how they are written.
- by_duckdb: asks folders on this machine by DuckDB, which needs no Java and a fraction of the work.
- by_spark: asks all others.

Both know the same views: `events`, `quarantine`, and each table by its name.
"""
