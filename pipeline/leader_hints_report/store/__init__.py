"""The output folder: which events are stored, and the tables made of them.

Bugs about events that are lost, doubled or in too many files, and about tables of which a killed
run left half, are here.

- folder: Store, an output folder as runs use it; tables of the days that have new events.
- stored_events: writes, reads and compacts events.
- batches: Batch, and the log of those that count; manifest: how runs write it.

    manifest/0000000012.jsonl      a change of the log: a batch in each line
    manifest/0000000012.all.jsonl  all batches up to that change; what precedes it is removed
    batches/                       the log of earlier versions
    events/batch=ID/part=latency/day=2026-01-02/*.parquet; lines that were none under part=bad
    checkpoints/NAME               how far a query on streams is
    tables.json                    the batches that the tables are made of
    format                         by which format lines were read, as far as they were understood
    lock                           a run uses the folder
    tables/NAME/day=2026-01-02/cluster=ID/*.parquet

A batch's id follows from its inputs. It counts once it is in the log, which is written last; what a
killed run left is removed or written over by the next one. So each input is taken in once, whenever
a run ends. Tables are rebuilt for the days of new batches, the day before and the day after, since
what begins on one day may end on the next.
"""
