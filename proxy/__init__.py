"""kafka-leader-hints: a proxy that gives legacy Kafka brokers the leader hints of KIP-951.

The layers, lowest first; each imports only what stands before it:

- ``wire``: bytes and values, no knowledge of any API.
- ``apis``: one file for each Kafka API that is understood.
- ``core``: links, the leader view, hints and holds. Decides, does no I/O.
- ``net``: sockets and tasks. The only package that imports Trio.
- ``cli``: the command ``leader-hints``.

``observe`` stands beside them and turns events and counts into logs and metrics.
``mock`` is librdkafka's embedded cluster in a child process, for tests and demonstrations.
"""
