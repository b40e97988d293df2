"""What ``leader-hints readiness`` says of clients, held against brokers of Kafka 4.

``python -m tests.readiness`` runs releases of client libraries once through proxies in front of
3.6.2 and once directly at 4.x. No client that fails there may have been said to be served.

- roster: the releases, and how each is installed; programs/ has what they run.
- trial: runs all of them at a cluster. page: the table in docs/deploy/kafka-4.md.
"""
