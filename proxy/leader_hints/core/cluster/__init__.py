"""What is known of one Kafka cluster: leaders, brokers, topic ids, and what to ask next.

Bugs about a wrong leader or epoch, a broker taken for another, or synthetic topic ids are here; so
are the limits of questions to brokers, while net/metadata asks them.

- leader: a leader and its epoch; leader_view: who leads which partition since which epoch.
- doubts: partitions of which brokers contradict what is known, and how that is settled.
- broker_identity: which node is behind a route; leader_candidates: who may lead a partition.
- refresh_rate, refresh_share: how often brokers are asked, and for how much at once.
- unknown_ids: topic ids that clients use and that have no name here.
- synthetic_ids: topic ids where brokers have none; synthetic_id_agreement: where they are offered.
"""
