"""What is known of one Kafka cluster: leaders, brokers, topic ids, and what to ask next.

Bugs about a wrong leader or epoch, a broker taken for another, too many questions to brokers, or
synthetic topic ids are here.

- leader_view: who leads which partition since which epoch.
- broker_identity: which node is behind a route; leader_candidates: who may lead a partition.
- refresh_rate, refresh_share: how often brokers are asked, and for how much at once.
- synthetic_ids: topic ids where brokers have none; synthetic_id_agreement: where they are offered.
"""
