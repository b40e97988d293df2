"""Real Kafka clusters, real clients and the proxy process, for tests and benchmarks.

Nouns:

- Library: the jars of one Kafka version, from Maven Central.
- RealCluster: broker processes of one version, with ZooKeeper or KRaft.
- Broker: one of them, with its addresses and its log.
- BrokerConnection: a plain connection on which whole protocol messages are asked and answered.
- ClusterAdmin: topics, leader moves, and what the brokers say of leaders.
- LeaderHistory: every leader and epoch that a cluster had, from the brokers' own logs.
- ProxyProcess: a running ``leader-hints run``, its log lines and metrics.
- Relay: a TCP relay before or behind the proxy that records, and can delay chosen responses.
- ClientProcess: a process of producers and consumers of one client library.
- Judgement: the hints that were given or missed, held against the history.
- Checker: nothing lost, nothing doubled, order kept.
"""
