"""Topics and leader moves, asked of the brokers themselves, past every proxy.

Every request is of a version that brokers from 2.4 on take.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypeVar

from kio.schema.alter_partition_reassignments.v0 import request as reassign
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.create_partitions.v1 import request as grow
from kio.schema.create_partitions.v1.response import CreatePartitionsResponse
from kio.schema.create_topics.v5 import request as create
from kio.schema.create_topics.v5.response import CreateTopicsResponse
from kio.schema.delete_topics.v4 import request as delete
from kio.schema.delete_topics.v4.response import DeleteTopicsResponse
from kio.schema.elect_leaders.v2 import request as elect
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v0 import request as alter
from kio.schema.incremental_alter_configs.v0.response import IncrementalAlterConfigsResponse
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v9.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from tests.harness.cluster import RealCluster, listener_list
from tests.harness.connection import Address, BrokerConnection
from tests.harness.waiting import until

R = TypeVar("R", bound=ResponsePayload)

Assignment = Sequence[Sequence[int]]
"""One list of replicas for each partition of a topic, the leader first."""

_PREFERRED = i8(0)
_SET = i8(0)
_OF_TOPIC = i8(2)
_BROKER = i8(4)
_MOVED = (ErrorCode.none, ErrorCode.election_not_needed)


class AdminError(AssertionError):
    """A broker refused what the tests asked of it."""


class TopicPartition(NamedTuple):
    """A partition by its topic's name."""

    topic: str
    partition: int


@dataclass(frozen=True)
class PartitionState:
    """What one broker's Metadata says of a partition: nodes by id, leader -1 where unknown."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


class ClusterAdmin:
    """Asks the brokers of one cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self._connections: dict[int, BrokerConnection] = {}

    def create_topic(
        self,
        name: str,
        assignment: Assignment,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Make one topic, as ``create_topics`` does."""
        self.create_topics({name: assignment}, settings)

    def create_topics(
        self, assignments: Mapping[str, Assignment], settings: Mapping[str, str] | None = None
    ) -> None:
        """Make topics; returns when every broker knows the leaders of all their partitions."""
        request = create.CreateTopicsRequest(
            topics=tuple(
                _creatable(name, assignment, settings or {})
                for name, assignment in assignments.items()
            )
        )
        for topic in self._ask_controller(request, CreateTopicsResponse).topics:
            _refuse_error(topic.error_code, f"create {topic.name}: {topic.error_message}")
        for name, assignment in assignments.items():
            leaders = {partition: replicas[0] for partition, replicas in enumerate(assignment)}
            until(partial(self._all_agree, name, leaders), f"all brokers know topic {name}")

    def add_partition(self, name: str, replicas: Sequence[int]) -> None:
        """Add a partition; returns when every broker knows its leader."""
        leaders = {number: state.leader for number, state in self.partitions(name).items()}
        assignment = grow.CreatePartitionsAssignment(
            broker_ids=tuple(BrokerId(node) for node in replicas)
        )
        topic = grow.CreatePartitionsTopic(
            name=TopicName(name), count=i32(len(leaders) + 1), assignments=(assignment,)
        )
        request = grow.CreatePartitionsRequest(
            topics=(topic,), timeout=_milliseconds(30_000), validate_only=False
        )
        for result in self._ask_controller(request, CreatePartitionsResponse).results:
            _refuse_error(result.error_code, f"add a partition: {result.error_message}")
        leaders[len(leaders)] = replicas[0]
        until(lambda: self._all_agree(name, leaders), f"all brokers know {name}'s new partition")

    def delete_topic(self, name: str) -> None:
        """Remove a topic; returns when no broker knows it any more."""
        request = delete.DeleteTopicsRequest(
            topic_names=(TopicName(name),), timeout=_milliseconds(30_000)
        )
        for result in self._ask_controller(request, DeleteTopicsResponse).responses:
            _refuse_error(result.error_code, f"delete {name}")
        until(lambda: self._all_agree(name, {}), f"all brokers forgot topic {name}")

    def metadata(self, topics: Sequence[str], node: int | None = None) -> MetadataResponse:
        """The Metadata answer (version 9) of broker ``node``, or of any that runs."""
        return self._ask(node or self._any_node(), _metadata_of(topics), MetadataResponse)

    def partitions(self, topic: str, node: int | None = None) -> dict[int, PartitionState]:
        """The partitions of a topic as broker ``node`` (or any) sees them; empty if it knows none.

        All but the leader and its epoch lags on followers: ask the leader for the in-sync set.
        """
        (answer,) = self.metadata([topic], node).topics
        return {
            int(partition.partition_index): PartitionState(
                leader=int(partition.leader_id),
                epoch=int(partition.leader_epoch),
                replicas=tuple(int(replica) for replica in partition.replica_nodes),
                in_sync=frozenset(int(replica) for replica in partition.isr_nodes),
            )
            for partition in answer.partitions
        }

    def leader(self, topic: str, partition: int = 0) -> int:
        """The leader of a partition that all brokers agree on."""
        return until(
            lambda: self._agreed_leaders(topic).get(partition),
            f"a leader of {topic}-{partition}",
        )

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None) -> int:
        """Move one leader, to the next replica in its list or to ``to``; returns the new leader."""
        where = TopicPartition(topic, partition)
        return self.move_leaders({where: to})[where]

    def move_leaders(self, moves: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Move several leaders at once and return them when all brokers know the new ones.

        Each replica list is rotated so that the new leader stands first; once no reassignment is
        under way, the preferred leaders are elected. The first step alone raises the epoch
        (the leader stays), so consumers meet FENCED_LEADER_EPOCH twice.
        """
        targets, _ = self._put_first(moves)
        self.elect_preferred(targets)
        return targets

    def raise_epochs(self, moves: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Put the next replica (or the one named) first in each list without electing it.

        The leader stays, its epoch goes up, but in KRaft mode. Returns who stands first now, when
        all brokers know.
        """
        targets, before = self._put_first(moves)
        until(
            lambda: all(
                self._all_have_heard(where, first, before[where])
                for where, first in targets.items()
            ),
            f"all brokers know that {targets} stand first",
        )
        return targets

    def _all_have_heard(self, where: TopicPartition, first: int, before: PartitionState) -> bool:
        """Whether all brokers know that a replica stands first, and the leader its new epoch."""
        states = [
            self.partitions(where.topic, node).get(where.partition) for node in self._running()
        ]
        if self.cluster.mode == "kraft":
            # An order of the same replicas leaves the epoch as it is (PartitionChangeBuilder).
            return all(state is not None and state.replicas[0] == first for state in states)
        # A broker's Metadata has it after its partition: LeaderAndIsr goes before UpdateMetadata.
        return all(state is not None and state.epoch > before.epoch for state in states)

    def _put_first(
        self, moves: Mapping[TopicPartition, int | None]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, PartitionState]]:
        """Return who stands first, and what was before, when the controller has done it."""
        # A topic may have thousands, so it is asked for once.
        states = {topic: self.partitions(topic) for topic in {where.topic for where in moves}}
        before = {where: states[where.topic][where.partition] for where in moves}
        orders: dict[TopicPartition, tuple[int, ...]] = {}
        for where, to in moves.items():
            state = before[where]
            first = to if to is not None else _next(state.replicas, state.leader)
            rest = tuple(node for node in state.replicas if node != first)
            orders[where] = (first, *rest)
        self._reassign(orders)
        until(self._nothing_reassigned, "no reassignment is under way")
        return {where: order[0] for where, order in orders.items()}, before

    def reassign(self, where: TopicPartition, replicas: Sequence[int]) -> None:
        """Give a partition other replicas; returns when the first leads and others have none."""
        gone = set(self.partitions(where.topic)[where.partition].replicas) - set(replicas)
        self._reassign({where: tuple(replicas)})
        until(self._nothing_reassigned, "no reassignment is under way")
        self.elect_preferred({where: replicas[0]})
        until(
            lambda: not any(self.cluster.holds(node, *where) for node in gone),
            f"brokers {gone} dropped their replicas of {where}",
        )

    def elect_preferred(self, targets: Mapping[TopicPartition, int]) -> None:
        """Make the replicas that stand first lead; returns when all brokers know.

        ``targets`` is what ``raise_epochs`` returned.
        """
        self._elect(targets)
        topics = {where.topic for where in targets}

        def all_know() -> bool:
            leaders = {topic: self._agreed_leaders(topic) for topic in topics}
            return all(leaders[topic].get(number) == to for (topic, number), to in targets.items())

        until(all_know, f"all brokers know the leaders {targets}")

    def advertise(self, node: int, address: Address) -> None:
        """Have a running broker of a ZooKeeper cluster advertise another address to clients.

        Returns when the Metadata of all brokers names it (KIP-226, per-broker settings).
        """
        told = {"CLIENTS": address, "INTERNAL": self.cluster.brokers[node].direct}
        setting = alter.AlterableConfig(
            name="advertised.listeners", config_operation=_SET, value=listener_list(told)
        )
        broker = alter.AlterConfigsResource(
            resource_type=_BROKER, resource_name=str(node), configs=(setting,)
        )
        request = alter.IncrementalAlterConfigsRequest(resources=(broker,), validate_only=False)
        # Only that broker takes settings of its own.
        for result in self._ask(node, request, IncrementalAlterConfigsResponse).responses:
            _refuse_error(result.error_code, f"advertise: {result.error_message}")
        until(
            lambda: all(self._advertised(node, asked) == address for asked in self._running()),
            f"all brokers name {address} for broker {node}",
        )

    def configure_topic(self, name: str, settings: Mapping[str, str]) -> None:
        """Set what a topic has of its own (KIP-339)."""
        configs = tuple(
            alter.AlterableConfig(name=key, config_operation=_SET, value=value)
            for key, value in settings.items()
        )
        topic = alter.AlterConfigsResource(
            resource_type=_OF_TOPIC, resource_name=name, configs=configs
        )
        request = alter.IncrementalAlterConfigsRequest(resources=(topic,), validate_only=False)
        answer = self._ask(self._any_node(), request, IncrementalAlterConfigsResponse)
        for result in answer.responses:
            _refuse_error(result.error_code, f"configure {name}: {result.error_message}")

    def _advertised(self, node: int, asked: int) -> Address | None:
        broker = self.cluster.brokers[asked]
        with BrokerConnection(broker.upstream) as connection:
            answer = connection.ask(_metadata_of([]), MetadataResponse)
        return next(
            (
                (str(known.host), int(known.port))
                for known in answer.brokers
                if known.node_id == node
            ),
            None,
        )

    def wait_in_sync(self, topic: str) -> None:
        """Wait until every replica of a topic is in sync, as the leaders say."""
        until(lambda: self._in_sync(topic), f"all replicas of {topic} are in sync")

    def _in_sync(self, topic: str) -> bool:
        states = self.partitions(topic)
        for partition, state in states.items():
            if state.leader < 0:
                return False
            truth = self.partitions(topic, state.leader).get(partition)
            if truth is None or truth.in_sync != set(truth.replicas):
                return False
        return bool(states)

    def _all_agree(self, topic: str, leaders: Mapping[int, int]) -> bool:
        return all(
            {number: state.leader for number, state in self.partitions(topic, node).items()}
            == leaders
            for node in self._running()
        )

    def _agreed_leaders(self, topic: str) -> dict[int, int]:
        """The leaders that all brokers name under the same epochs."""
        views = [
            {(number, state.leader, state.epoch) for number, state in found.items()}
            for found in (self.partitions(topic, node) for node in self._running())
        ]
        return {number: leader for number, leader, _ in set.intersection(*views) if leader >= 0}

    def _reassign(self, orders: Mapping[TopicPartition, Sequence[int]]) -> None:
        request = reassign.AlterPartitionReassignmentsRequest(
            topics=tuple(
                reassign.ReassignableTopic(
                    name=TopicName(topic),
                    partitions=tuple(
                        reassign.ReassignablePartition(
                            partition_index=i32(where.partition),
                            replicas=tuple(BrokerId(node) for node in order),
                        )
                        for where, order in orders.items()
                        if where.topic == topic
                    ),
                )
                for topic in {where.topic for where in orders}
            )
        )
        answer = self._ask_controller(request, AlterPartitionReassignmentsResponse)
        _refuse_error(answer.error_code, f"reassign: {answer.error_message}")
        for topic in answer.responses:
            for partition in topic.partitions:
                _refuse_error(partition.error_code, f"reassign: {partition.error_message}")

    def _nothing_reassigned(self) -> bool:
        answer = self._ask_controller(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse
        )
        _refuse_error(answer.error_code, "list reassignments")
        return not answer.topics

    def _elect(self, targets: Mapping[TopicPartition, int]) -> None:
        waiting = set(targets)

        def all_elected() -> bool:
            # A preferred replica that is just then out of sync is elected a moment later.
            waiting.difference_update(self._elected(waiting))
            return not waiting

        until(all_elected, f"preferred leaders of {targets} elected")

    def _elected(self, wanted: set[TopicPartition]) -> set[TopicPartition]:
        request = elect.ElectLeadersRequest(
            election_type=_PREFERRED,
            topic_partitions=tuple(
                elect.TopicPartitions(
                    topic=TopicName(topic),
                    partitions=tuple(i32(w.partition) for w in wanted if w.topic == topic),
                )
                for topic in {where.topic for where in wanted}
            ),
            # A controller may miss that its election is done and answer only at the timeout.
            timeout=_milliseconds(2_000),
        )
        answer = self._ask_controller(request, ElectLeadersResponse)
        return {
            TopicPartition(result.topic, int(partition.partition_id))
            for result in answer.replica_election_results
            for partition in result.partition_result
            if partition.error_code in _MOVED
        }

    def _running(self) -> list[int]:
        return [node for node, broker in self.cluster.brokers.items() if broker.running]

    def _any_node(self) -> int:
        return self._running()[0]

    def _ask_controller(self, request: RequestPayload, response_type: type[R]) -> R:
        return until(lambda: self._try_controller(request, response_type), "the controller answers")

    def _try_controller(self, request: RequestPayload, response_type: type[R]) -> R | None:
        controller = int(self.metadata([]).controller_id)
        if controller not in self._running():
            return None
        with contextlib.suppress(ConnectionError):
            answer = self._ask(controller, request, response_type)
            if ErrorCode.not_controller not in _error_codes(answer):
                return answer
        return None

    def _ask(self, node: int, request: RequestPayload, response_type: type[R]) -> R:
        kept = self._connections.pop(node, None)
        if kept is not None:
            # The broker may have been restarted since.
            with contextlib.suppress(ConnectionError):
                return self._ask_on(kept, node, request, response_type)
        return self._ask_on(self.cluster.connect(node), node, request, response_type)

    def _ask_on(
        self,
        connection: BrokerConnection,
        node: int,
        request: RequestPayload,
        response_type: type[R],
    ) -> R:
        """Ask, and keep the connection: one for each look would be a load on the brokers."""
        try:
            answer = connection.ask(request, response_type)
        except BaseException:
            connection.close()
            raise
        self._connections[node] = connection
        return answer


def _metadata_of(topics: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=TopicName(name)) for name in topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _creatable(
    name: str, assignment: Assignment, settings: Mapping[str, str]
) -> create.CreatableTopic:
    return create.CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=tuple(
            create.CreatableReplicaAssignment(
                partition_index=i32(partition),
                broker_ids=tuple(BrokerId(node) for node in replicas),
            )
            for partition, replicas in enumerate(assignment)
        ),
        configs=tuple(
            create.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()
        ),
    )


def _next(replicas: Sequence[int], leader: int) -> int:
    return replicas[(replicas.index(leader) + 1) % len(replicas)]


def _milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))


def _error_codes(answer: ResponsePayload) -> set[object]:
    """The error codes at the top of an answer and of its topics."""
    codes = {getattr(answer, "error_code", None)}
    for part in (*getattr(answer, "topics", ()), *getattr(answer, "responses", ())):
        codes.add(getattr(part, "error_code", None))
    return codes


def _refuse_error(code: ErrorCode, what: str) -> None:
    if code is not ErrorCode.none:
        raise AdminError(f"{what} ({code.name})")
