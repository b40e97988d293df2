"""The client matrix: every client library with every broker version, through the proxy.

Nouns:

- BrokerKind: a broker version with its mode, and the cluster that is started of it.
- Client: a client library of one version, what it lacks, and which hints it uses.
- Feature: something that clients do, which is checked in every cell.
- Lane: a producer, its topic and its consumer, while leaders move.
- Watch: whether a client goes to a hinted leader before any Metadata answer.
- Cell: one client before one broker version; its result is kept as JSON under tests/matrix/cells.
- Page: docs/compatibility.md, made from all results.

``python -m tests.matrix --help`` says how to run it. ``python -m tests.matrix.returns`` and
``python -m tests.matrix.doubles`` look at what librdkafka does without a proxy.
"""
