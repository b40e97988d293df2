"""The Kafka APIs that the proxy understands, one file each; pure.

Each file begins with its versions and what each changed, as far as the proxy must know. The
source is the message definitions of apache/kafka (clients/src/main/resources/common/message).

Nouns:

- ApiKey, ErrorCode: the numbers that the proxy acts upon.
- RequestHeader: what precedes every request's body.
- Failure: a partition in a response whose error a hint can answer, and where its tags are.
- LeaderHint, Endpoint: the answer, in KIP-951's CurrentLeader and NodeEndpoints.
- Readdress: returns the address to write in place of a broker's, wherever a response has one.
- FetchScan: looks for failures in a Fetch response while its bytes still arrive.
- AnswerScan: reads which partitions a response answers, and how, while its bytes pass.
- TopicMetadata: what a broker reports of a topic's leaders.
"""
