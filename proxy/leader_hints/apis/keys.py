"""API keys, and the names that logs and metrics give them."""

from enum import IntEnum


class ApiKey(IntEnum):
    """The APIs that the proxy acts upon, or asks itself; every other key passes untouched."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    # These three are looked up by number: `conformance` sends them to a cluster.
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DESCRIBE_CONFIGS = 32
    SASL_AUTHENTICATE = 36
    ELECT_LEADERS = 43
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    DESCRIBE_CLUSTER = 60


#: Names as the Kafka protocol guide spells them, by key, and the newest version of each request in
#: Kafka 4.1 and before.
_APIS = (
    ("Produce", 13),
    ("Fetch", 18),
    ("ListOffsets", 11),
    ("Metadata", 13),
    ("LeaderAndIsr", 7),
    ("StopReplica", 4),
    ("UpdateMetadata", 8),
    ("ControlledShutdown", 3),
    ("OffsetCommit", 10),
    ("OffsetFetch", 10),
    ("FindCoordinator", 6),
    ("JoinGroup", 9),
    ("Heartbeat", 4),
    ("LeaveGroup", 5),
    ("SyncGroup", 5),
    ("DescribeGroups", 6),
    ("ListGroups", 5),
    ("SaslHandshake", 1),
    ("ApiVersions", 4),
    ("CreateTopics", 7),
    ("DeleteTopics", 6),
    ("DeleteRecords", 2),
    ("InitProducerId", 6),
    ("OffsetForLeaderEpoch", 4),
    ("AddPartitionsToTxn", 5),
    ("AddOffsetsToTxn", 4),
    ("EndTxn", 5),
    ("WriteTxnMarkers", 2),
    ("TxnOffsetCommit", 5),
    ("DescribeAcls", 3),
    ("CreateAcls", 3),
    ("DeleteAcls", 3),
    ("DescribeConfigs", 4),
    ("AlterConfigs", 2),
    ("AlterReplicaLogDirs", 2),
    ("DescribeLogDirs", 5),
    ("SaslAuthenticate", 2),
    ("CreatePartitions", 3),
    ("CreateDelegationToken", 3),
    ("RenewDelegationToken", 2),
    ("ExpireDelegationToken", 2),
    ("DescribeDelegationToken", 3),
    ("DeleteGroups", 2),
    ("ElectLeaders", 2),
    ("IncrementalAlterConfigs", 1),
    ("AlterPartitionReassignments", 1),
    ("ListPartitionReassignments", 0),
    ("OffsetDelete", 0),
    ("DescribeClientQuotas", 1),
    ("AlterClientQuotas", 1),
    ("DescribeUserScramCredentials", 0),
    ("AlterUserScramCredentials", 0),
    ("Vote", 2),
    ("BeginQuorumEpoch", 1),
    ("EndQuorumEpoch", 1),
    ("DescribeQuorum", 2),
    ("AlterPartition", 3),
    ("UpdateFeatures", 2),
    ("Envelope", 0),
    ("FetchSnapshot", 1),
    ("DescribeCluster", 2),
    ("DescribeProducers", 0),
    ("BrokerRegistration", 4),
    ("BrokerHeartbeat", 2),
    ("UnregisterBroker", 0),
    ("DescribeTransactions", 0),
    ("ListTransactions", 2),
    ("AllocateProducerIds", 0),
    ("ConsumerGroupHeartbeat", 1),
    ("ConsumerGroupDescribe", 1),
    ("ControllerRegistration", 0),
    ("GetTelemetrySubscriptions", 0),
    ("PushTelemetry", 0),
    ("AssignReplicasToDirs", 0),
    ("ListClientMetricsResources", 1),
    ("DescribeTopicPartitions", 0),
    ("ShareGroupHeartbeat", 1),
    ("ShareGroupDescribe", 1),
    ("ShareFetch", 2),
    ("ShareAcknowledge", 2),
)
#: For metrics. A key that is not here (newer than this list, or garbage) is counted as "other", so
#: that labels stay bounded.
NAMES: dict[int, str] = dict(enumerate(name for name, _ in _APIS))
NEWEST: dict[int, int] = dict(enumerate(newest for _, newest in _APIS))


def api_name(key: int) -> str:
    """Return the name of an API, "other" where it is not known."""
    return NAMES.get(key, "other")
