"""The closest replica (KIP-392): which follower a consumer is sent to, and what that saves.

Bugs about a replica that is named wrongly, or not named, and about bytes between racks are here.

- racks: in which rack each node is, by Metadata or by the configuration.
- in_sync_replicas: which replicas of a partition are in sync, by Metadata.
- closest_replica: the rule: which replica is named, or why none is.
- named_replicas: what was named on a link lately, so that nobody goes back and forth.
- followed: what is read on a link from a follower, which may stop to replicate it.
- taken_out: where records were last taken out of responses on a link.
- asked_epochs: the leader epochs with which a consumer has asked.
- placement: looks at the responses of a link, and has the rule's choice written into them.
- rack_traffic: consumers' bytes by racks, and how often the rule came to what.
- bytes_read: those of one link by topic, for the journal.
"""
