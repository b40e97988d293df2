"""kafka-leader-hints: a proxy that gives legacy Kafka brokers the leader hints of KIP-951.

The layers, lowest first; each imports only what is below it:

- ``wire``: bytes and values, no knowledge of any API.
- ``apis``: one file for each Kafka API that is understood.
- ``core``: links, the leader view, hints and holds. Decides, does no I/O.
- ``observe``: turns events and counts into logs, metrics and the status.
- ``net``: sockets and tasks, on Trio.
- ``check``, ``faults``, ``local``: what `check` and `local` add, each on its own.
- ``app``: one process, composed of all of them.
- ``conformance``: what a client does with hints, and the Lab of the pytest plugin.
- ``cli``: the command ``leader-hints``.

``mock`` is librdkafka's embedded cluster in a child process, for tests and demonstrations.
"""
