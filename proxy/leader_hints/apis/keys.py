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


#: Names as the Kafka protocol guide spells them, for metrics. A key that is not here (newer
#: than this list, or garbage) is counted as "other", so that labels stay bounded.
NAMES: dict[int, str] = dict(
    enumerate(
        (
            "Produce",
            "Fetch",
            "ListOffsets",
            "Metadata",
            "LeaderAndIsr",
            "StopReplica",
            "UpdateMetadata",
            "ControlledShutdown",
            "OffsetCommit",
            "OffsetFetch",
            "FindCoordinator",
            "JoinGroup",
            "Heartbeat",
            "LeaveGroup",
            "SyncGroup",
            "DescribeGroups",
            "ListGroups",
            "SaslHandshake",
            "ApiVersions",
            "CreateTopics",
            "DeleteTopics",
            "DeleteRecords",
            "InitProducerId",
            "OffsetForLeaderEpoch",
            "AddPartitionsToTxn",
            "AddOffsetsToTxn",
            "EndTxn",
            "WriteTxnMarkers",
            "TxnOffsetCommit",
            "DescribeAcls",
            "CreateAcls",
            "DeleteAcls",
            "DescribeConfigs",
            "AlterConfigs",
            "AlterReplicaLogDirs",
            "DescribeLogDirs",
            "SaslAuthenticate",
            "CreatePartitions",
            "CreateDelegationToken",
            "RenewDelegationToken",
            "ExpireDelegationToken",
            "DescribeDelegationToken",
            "DeleteGroups",
            "ElectLeaders",
            "IncrementalAlterConfigs",
            "AlterPartitionReassignments",
            "ListPartitionReassignments",
            "OffsetDelete",
            "DescribeClientQuotas",
            "AlterClientQuotas",
            "DescribeUserScramCredentials",
            "AlterUserScramCredentials",
            "Vote",
            "BeginQuorumEpoch",
            "EndQuorumEpoch",
            "DescribeQuorum",
            "AlterPartition",
            "UpdateFeatures",
            "Envelope",
            "FetchSnapshot",
            "DescribeCluster",
            "DescribeProducers",
            "BrokerRegistration",
            "BrokerHeartbeat",
            "UnregisterBroker",
            "DescribeTransactions",
            "ListTransactions",
            "AllocateProducerIds",
            "ConsumerGroupHeartbeat",
            "ConsumerGroupDescribe",
            "ControllerRegistration",
            "GetTelemetrySubscriptions",
            "PushTelemetry",
            "AssignReplicasToDirs",
            "ListClientMetricsResources",
            "DescribeTopicPartitions",
        )
    )
)


def api_name(key: int) -> str:
    """Return the name of an API, "other" where it is not known."""
    return NAMES.get(key, "other")
