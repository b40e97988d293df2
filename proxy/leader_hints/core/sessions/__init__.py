"""Fetch sessions (KIP-227), and Fetch by topic id in front of brokers that know names only.

Bugs about epochs or topics that a session remembers wrongly are here.

- fetch_sessions: the leader epochs that a session's partitions were last asked with.
- fetch_by_name: ids to names and back, and what happens when a topic is recreated.
"""
