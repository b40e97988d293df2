"""StandingCluster: a cluster that was there before, in which topics are made and leaders moved.

For those who test clients. Only versions are asked that all brokers from 2.4 on take.

Tested in ``tests/real/test_local_faults.py``.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any, Final

import trio
from kio.schema.alter_partition_reassignments.v0 import request as reassign
from kio.schema.create_topics.v4 import request as create
from kio.schema.delete_topics.v3.request import DeleteTopicsRequest
from kio.schema.elect_leaders.v1 import request as elect
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import request as reassigning
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from leader_hints.address import Address
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.kio_messages import Message, read_body, write_body
from leader_hints.errors import BrokerError
from leader_hints.local.discovery import discover
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.tls.route_security import make_connector
from leader_hints.settings.local import LocalSettings
from leader_hints.wire.errors import WireError

_CLIENT_ID: Final = "leader-hints-conformance"
#: Seconds for a connection, for an answer, and until what was asked for has come about.
_CONNECT, _ANSWER, _EFFECT = 5.0, 15.0, 60.0
#: Seconds between two looks.
_LOOK: Final = 0.1
_PREFERRED: Final = i8(0)
_MOVED: Final = (ErrorCode.none, ErrorCode.election_not_needed)
#: Replicas of a topic, at most.
_REPLICAS: Final = 3


class StandingCluster:
    """``brokers``: node id -> host and port, as they were at the beginning.

    All methods wait until what they do has come about, and raise BrokerError where it does not or
    is not allowed.
    """

    def __init__(self, settings: LocalSettings) -> None:
        """Find the brokers.

        :raises ConfigurationError: a certificate, key or root cannot be used.
        :raises BrokerError: there is no cluster at the addresses.
        """
        self._connector: Connector = make_connector(settings.upstream_tls, settings.sasl)
        found = discover(settings.bootstrap, self._connector)
        self.brokers = {
            node: (address.host, address.port) for node, address in found.brokers.items()
        }

    @property
    def nodes(self) -> Sequence[int]:
        """The brokers that the topics made here are on."""
        return sorted(self.brokers)[:_REPLICAS]

    def create(self, topics: Sequence[str]) -> None:
        """Make topics of one partition, which the first of the nodes leads."""
        trio.run(self._create, topics)

    def delete(self, topics: Sequence[str]) -> None:
        """Remove topics."""
        trio.run(self._delete, topics)

    def prepare(self, topic: str, partition: int, node: int) -> None:
        """Put a node first among the replicas of a partition, so that it can be elected.

        The leader stays, but its epoch rises: clients may get FENCED_LEADER_EPOCH.
        """
        trio.run(self._prepare, topic, partition, node)

    def set_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> tuple[int, int]:
        """Make ``node`` the leader of a partition; return it with its epoch.

        :raises ValueError: there is a ``metadata_lag``, which real brokers do not let one choose.
        """
        if metadata_lag:
            raise ValueError("metadata_lag: real brokers tell Metadata when they like")
        return trio.run(self._set_leader, topic, partition, node)

    async def _create(self, topics: Sequence[str]) -> None:
        replicas = tuple(map(BrokerId, self.nodes))
        placed = create.CreatableReplicaAssignment(partition_index=i32(0), broker_ids=replicas)
        request = create.CreateTopicsRequest(
            topics=tuple(
                create.CreatableTopic(
                    name=TopicName(name),
                    num_partitions=i32(-1),
                    replication_factor=i16(-1),
                    assignments=(placed,),
                    configs=(),
                )
                for name in topics
            )
        )
        answer = await self._ask_controller(request)
        for topic in answer.topics:
            _refuse(topic.error_code, f"create topic {topic.name}")
        for name in topics:
            await _until(partial(self._led_by, name, 0, self.nodes[0]), f"{name} has a leader")

    async def _delete(self, topics: Sequence[str]) -> None:
        timeout = i32Timedelta.parse(timedelta(seconds=_ANSWER))
        names = tuple(map(TopicName, topics))
        answer = await self._ask_controller(DeleteTopicsRequest(topic_names=names, timeout=timeout))
        for topic in answer.responses:
            _refuse(topic.error_code, f"delete topic {topic.name}")

    async def _prepare(self, topic: str, partition: int, node: int) -> None:
        others = (other for other in self.nodes if other != node)
        order = reassign.ReassignablePartition(
            partition_index=i32(partition), replicas=tuple(map(BrokerId, (node, *others)))
        )
        of_topic = reassign.ReassignableTopic(name=TopicName(topic), partitions=(order,))
        answer = await self._ask_controller(
            reassign.AlterPartitionReassignmentsRequest(topics=(of_topic,))
        )
        _refuse(answer.error_code, f"reassign {topic}")
        for response in answer.responses:
            for result in response.partitions:
                _refuse(result.error_code, f"reassign {topic}")
        await _until(partial(self._at_rest, topic, partition), f"{topic} is reassigned")

    async def _at_rest(self, topic: str, partition: int) -> bool:
        asked = reassigning.ListPartitionReassignmentsTopics(
            name=TopicName(topic), partition_indexes=(i32(partition),)
        )
        answer = await self._ask_controller(
            reassigning.ListPartitionReassignmentsRequest(topics=(asked,))
        )
        _refuse(answer.error_code, "list reassignments")
        return not answer.topics

    async def _set_leader(self, topic: str, partition: int, node: int) -> tuple[int, int]:
        if (await self._partition(topic, partition)).replica_nodes[0] != node:
            await self._prepare(topic, partition, node)
        await _until(partial(self._elected, topic, partition), f"{topic} has its preferred leader")
        await _until(partial(self._led_by, topic, partition, node), f"node {node} leads {topic}")
        return node, (await self._partition(topic, partition)).leader_epoch

    async def _elected(self, topic: str, partition: int) -> bool:
        """Ask for an election. One of a replica that is just then out of sync comes to nothing."""
        wanted = elect.TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),))
        answer = await self._ask_controller(
            elect.ElectLeadersRequest(
                election_type=_PREFERRED,
                topic_partitions=(wanted,),
                # A controller may miss that its election is done and answer only at the timeout.
                timeout=i32Timedelta.parse(timedelta(seconds=2)),
            )
        )
        _refuse(answer.error_code, "elect a leader")
        results = [r for of in answer.replica_election_results for r in of.partition_result]
        return all(result.error_code in _MOVED for result in results)

    async def _led_by(self, topic: str, partition: int, node: int) -> bool:
        return bool((await self._partition(topic, partition)).leader_id == node)

    async def _partition(self, topic: str, partition: int) -> Message:
        """Return a partition's leader and epoch in Metadata."""

        async def told() -> Message | None:
            answer = await self._ask_controller(_metadata(topic))
            found = [p for t in answer.topics for p in t.partitions]
            return next((p for p in found if p.partition_index == partition), None)

        return await _until(told, f"Metadata has {topic}")

    async def _ask_controller(self, request: Message) -> Message:
        return await _until(partial(self._try_controller, request), "the controller answers")

    async def _try_controller(self, request: Message) -> Message | None:
        at = await self._controller()
        if at is None:
            return None
        answer = await self._ask(at, request)
        parts = (*getattr(answer, "topics", ()), *getattr(answer, "responses", ()))
        codes = {getattr(part, "error_code", None) for part in (answer, *parts)}
        return None if ErrorCode.not_controller in codes else answer

    async def _controller(self) -> Address | None:
        """Return the controller's address, from the first broker that answers."""
        lost = BrokerError("no broker")
        for host, port in self.brokers.values():
            try:
                known = await self._ask(Address(host, port), _metadata())
            except BrokerError as error:
                lost = error
                continue
            at = {broker.node_id: Address(broker.host, broker.port) for broker in known.brokers}
            return at.get(known.controller_id)
        raise lost

    async def _ask(self, address: Address, request: Message) -> Message:
        key, version = ApiKey(type(request).__api_key__), type(request).__version__
        opened = await self._connector.connect(address, _CONNECT, _CLIENT_ID, _ANSWER)
        async with aclosing(opened) as connection:
            try:
                reader = await connection.ask(key, version, write_body(request))
                return read_body(key, version, reader)
            except WireError as error:
                raise BrokerError(f"its answer cannot be read: {error}") from None


def _metadata(*topics: str) -> Message:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=TopicName(name)) for name in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


async def _until(look: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Look again and again until there is something to see; return it."""
    with trio.move_on_after(_EFFECT):
        while not (found := await look()):  # noqa: ASYNC110 - a broker tells no event
            await trio.sleep(_LOOK)
        return found
    raise BrokerError(f"not within {_EFFECT:g} s: {what}")


def _refuse(code: ErrorCode, what: str) -> None:
    if code is not ErrorCode.none:
        raise BrokerError(f"cannot {what}: {code.name}")
