"""The mock cluster that librdkafka carries, in a process of its own.

The confluent-kafka wheel contains librdkafka, and librdkafka contains a small Kafka cluster for
its own tests. It needs no Java and is up in milliseconds, which makes it the cluster of the demo
and of the quick tests. It is C code that some well-formed requests crash, so it never runs inside
the process that uses it.

Bugs about the mock cluster of the demo, of `local --cluster mock:N` and of tests are here.

- cluster: the handle that a test or the demo holds; it starts the child process and talks to it.
- steady: one that is started again when it dies.
- child: the process that owns the embedded cluster, obeys commands and ends with its parent.
- embedded: librdkafka's mock cluster, driven through ctypes, inside the child.

What the mock does not do as a real broker does: all its brokers share one log for each partition;
its Metadata shows a move at once, unless a lag is asked for; an ex-leader answers Fetch with
NOT_LEADER_OR_FOLLOWER where a real one answers FENCED_LEADER_EPOCH; it has no fetch sessions; an
empty Fetch, also one with an error in it, waits its whole MaxWait; it answers ApiVersions 3 and
above with UNSUPPORTED_VERSION. From Fetch 12 on it adds CurrentLeader to NOT_LEADER_OR_FOLLOWER,
which real brokers do from Fetch 16 on, but NodeEndpoints only from 16 on, as they do.
"""
