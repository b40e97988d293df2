"""The mock tier: confluent-kafka clients on librdkafka's mock cluster, through the proxy."""
