"""The Kafka APIs that the proxy understands, one file each; pure.

Each file heads with its versions and what each changed, as far as the proxy must know. The
source is the message definitions of apache/kafka (clients/src/main/resources/common/message).

Nouns:

- ApiKey, ErrorCode: the numbers that the proxy acts upon.
- RequestHeader: what precedes every request's body.
- Failure: a partition in a response whose error a hint can answer, and where its tags stand.
- LeaderHint, Endpoint: the answer, in KIP-951's CurrentLeader and NodeEndpoints.
- Readdress: what stands in place of a broker's address, wherever a response says one.
- refuse, restage: a refusal that no broker gave, Metadata of a former state; both by kio.
- FetchScan: looks for failures in a Fetch response while its bytes still arrive.
- AnswerScan: reads which partitions a response answers, and how, while its bytes go by.
- TopicMetadata, MetadataResponse: what a broker says of leaders and endpoints.
"""
