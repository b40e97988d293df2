"""What is known of one Kafka cluster: leaders, brokers, topic ids, and what to ask next.

Bugs about a wrong leader or epoch, a broker taken for another, or synthetic topic ids are here. So
are bugs about questions to brokers that are too many or too few; net/metadata only sends them.

- cluster: all that is known of one cluster; it owns the parts that follow.
- leader: a leader and its epoch; leader_view: the leader of each partition, and since which epoch.
- leader_reports: what a report about one partition changes: newer, the same, or contradicting.
- leader_moves: the former leader, whether the new one has confirmed that it leads, and which
  brokers name it to clients.
- known_topics: what a name or an id means; deleted and recreated topics; topic_leaders: one topic.
- topic_changes: which topics there was news of; hidden_topics: those that ACLs hide from the proxy.
- doubts: partitions of which brokers contradict what is known, and how that is settled.
- broker_identity: which node is behind a route; leader_candidates: which brokers may lead what.
- leadership_answer: what a broker's answer to ListOffsets says of its leadership.
- refresh_plan: what to ask which broker while responses are held; poll_plan: what a poll asks for.
- refresh_rate, refresh_share: how often brokers are asked, and for how much at once.
- unknown_ids: topic ids that clients use and that have no name here.
- synthetic_ids: topic ids where brokers have none; synthetic_id_agreement: where they are offered.
"""
