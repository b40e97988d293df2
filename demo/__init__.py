"""The demo: leaders move under a producer and a consumer, with hints off and on in turn.

`python -m demo` needs no Kafka: the brokers are librdkafka's mock cluster.

Nouns:

- Stage: a mock cluster and a proxy process in front of its brokers, for one round.
- Traffic: the producer and the consumer that run through the proxy, and what they connected to.
- Ledger: which records were produced, acknowledged and read; it finds the lost and the doubled.
- Watch: the wait for the first record produced after a move.
- Move: one leader move, how long the clients needed to recover, and the hints they were given.
- RoundReport: everything that was seen in one round.
- Fault: a reason for which the demo fails, as a sentence.
- Screen: what is shown, live on a terminal or as plain lines.

`python -m demo.fleet_report` goes on to the report of `leader-hints-report`:

- Fleet: a mock cluster with a sidecar in front of each broker; each writes a journal.
"""
