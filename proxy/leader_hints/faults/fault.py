"""Faults that are injected on purpose, for tests of clients: the action, and its targets.

A fault chooses by route, API, client id, topic and partition; what it does not name it does not
mind. Those of several that do the same to one message do not add up: the oldest does it.
"""

import random
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import NAMES
from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.route import Route

#: A port without a listener.
_DEAD_PORT = 1
#: Bytes a second that nothing here sends.
_FASTEST = 1 << 40


class Action(StrEnum):
    """What is done.

    ERROR: Produce and Fetch are refused, and never reach a broker. DELAY: the response waits.
    THROTTLE: it goes slowly. CUT: the connection ends in the middle of it; DROP: in place of it.
    REFUSE: connections are closed as soon as they are made, and those there are at the next
    request. STALE_METADATA: leaders are reported as they were when the fault began.
    """

    ERROR = "error"
    DELAY = "delay"
    THROTTLE = "throttle"
    CUT = "cut"
    DROP = "drop"
    REFUSE = "refuse"
    STALE_METADATA = "stale_metadata"


#: Of whose messages partitions are read, for all actions that have no APIs of their own.
_WITH_PARTITIONS: Final = frozenset({"Produce", "Fetch"})
#: The APIs that an action can be done to, where these are not all.
_APIS: Final[Mapping[Action, frozenset[str]]] = {
    Action.ERROR: _WITH_PARTITIONS,
    Action.STALE_METADATA: frozenset({"Metadata"}),
}


#: Fields that only one action has.
_OWN: Final[Mapping[str, Action]] = {
    "error": Action.ERROR,
    "hint": Action.ERROR,
    "delay_ms": Action.DELAY,
    "bytes_per_second": Action.THROTTLE,
    "hide_nodes": Action.STALE_METADATA,
}


class Hint(StrEnum):
    """What hint an error carries.

    RIGHT: leader and epoch as they are known. EQUAL: another broker, under the same epoch. STALE:
    another broker, under the epoch before. UNREACHABLE: another broker, under the next epoch, at
    an address where nobody listens.
    """

    NONE = "none"
    RIGHT = "right"
    EQUAL = "equal"
    STALE = "stale"
    UNREACHABLE = "unreachable"


class Error(StrEnum):
    """The errors that a refusal can have, by Kafka's names."""

    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"

    @property
    def code(self) -> int:
        """Kafka's number."""
        return ErrorCode[self.name]


class Fault(BaseModel):
    """One fault, as it is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Action = Field(description="What is done.")
    routes: frozenset[str] = Field(default=frozenset(), description="Names of routes; all if none.")
    apis: frozenset[str] = Field(
        default=frozenset(), description="Names of APIs, such as Produce; all if none."
    )
    client_ids: frozenset[str] = Field(default=frozenset(), description="Client ids; all if none.")
    topics: frozenset[str] = Field(
        default=frozenset(),
        description="Topics, in Produce and Fetch, and in Metadata of stale_metadata; all if none.",
    )
    partitions: frozenset[int] = Field(
        default=frozenset(), description="Partitions, where topics count; all if none."
    )
    error: Error = Field(default=Error.NOT_LEADER_OR_FOLLOWER, description="Of action error.")
    hint: Hint = Field(default=Hint.NONE, description="Of action error: which hint it carries.")
    delay_ms: int = Field(default=0, ge=0, le=600_000, description="Of action delay.")
    bytes_per_second: int = Field(
        default=1024, ge=1, le=_FASTEST, description="Of action throttle."
    )
    hide_nodes: frozenset[int] = Field(
        default=frozenset(), description="Of action stale_metadata: brokers that are left out."
    )
    times: int = Field(default=0, ge=0, description="How often it is done; 0: until taken back.")
    probability: float = Field(
        default=1.0, gt=0, le=1, description="Of those that it chooses, how many it is done to."
    )

    @field_validator("apis")
    @classmethod
    def _check_apis(cls, apis: frozenset[str]) -> frozenset[str]:
        unknown = sorted(apis - set(NAMES.values()))
        if unknown:
            raise ValueError(f"no such API: {', '.join(unknown)}; they are named as Produce is")
        return apis

    @model_validator(mode="after")
    def _check_action(self) -> Self:
        possible = _APIS.get(self.action)
        if possible is not None and self.apis - possible:
            raise ValueError(f"{self.action} is only done to {' and '.join(sorted(possible))}")
        read = possible or _WITH_PARTITIONS
        if self.chooses_some_partitions and self.apis and self.apis.isdisjoint(read):
            raise ValueError(
                f"topics and partitions are only chosen in {' and '.join(sorted(read))}"
            )
        for name, action in _OWN.items():
            if name in self.model_fields_set and self.action is not action:
                raise ValueError(f"{name} is of action {action}; {self.action} has no such option")
        return self

    def chooses(self, route: str, api: str, client_id: str) -> bool:
        """Whether a request is chosen, as far as its header tells."""
        return (
            (not self.routes or route in self.routes)
            and (not self.apis or api in self.apis)
            and (not self.client_ids or client_id in self.client_ids)
        )

    @property
    def chooses_connections(self) -> bool:
        """Whether all that a connection may bring is chosen, so that it can be refused at once."""
        return not (self.apis or self.client_ids or self.chooses_some_partitions)

    @property
    def chooses_some_partitions(self) -> bool:
        """Whether topics or partitions are chosen."""
        return bool(self.topics or self.partitions)

    def chooses_partition(self, topic: str, partition: int) -> bool:
        """Whether a partition is chosen."""
        return (not self.topics or topic in self.topics) and (
            not self.partitions or partition in self.partitions
        )


class Begun:
    """A fault in force. ``left``: how often it is still done, ``None``: as often as it can be.

    ``told``: of stale_metadata, leader and epoch by topic and partition when it began.
    """

    def __init__(
        self, fault: Fault, number: int, told: Mapping[tuple[str, int], tuple[int, int]]
    ) -> None:
        self.fault = fault
        self.number = number
        self.told = told
        self.left = fault.times or None


class Faults:
    """The faults in force, oldest first. ``seed``: the same one chooses the same messages."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # the same faults for the same seed  # nosec B311
        self._begun: dict[int, Begun] = {}
        self._numbers = 0

    def __iter__(self) -> Iterator[Begun]:
        return iter(list(self._begun.values()))

    def begin(
        self, fault: Fault, told: Mapping[tuple[str, int], tuple[int, int]] | None = None
    ) -> int:
        """Put a fault in force; return its number."""
        self._numbers += 1
        self._begun[self._numbers] = Begun(fault, self._numbers, told or {})
        return self._numbers

    def end(self, number: int) -> bool:
        """Take a fault back; false where there is none of that number."""
        return self._begun.pop(number, None) is not None

    def clear(self) -> None:
        """Take all faults back."""
        self._begun.clear()

    def due(self, begun: Begun) -> bool:
        """Whether a fault applies this time to what it selects; it is counted then."""
        if begun.number not in self._begun or self._random.random() >= begun.fault.probability:
            return False
        if begun.left is not None:
            begun.left -= 1
            if not begun.left:
                del self._begun[begun.number]
        return True


def hint_for(kind: Hint, route: Route, topic: Topic, partition: int) -> LeaderHint | None:
    """Return the hint of a kind for a partition, ``None`` where too little is known for it."""
    leader = route.broker.view.leader(topic, partition) if route.broker.view is not None else None
    if kind is Hint.NONE or leader is None:
        return None
    if kind is Hint.RIGHT:
        return _hint(route, leader)
    others = sorted(node for node in route.broker.endpoints if node != leader.node)
    if not others:
        return None
    change = {Hint.EQUAL: 0, Hint.STALE: -1, Hint.UNREACHABLE: 1}[kind]
    hint = _hint(route, Leader(others[0], max(leader.epoch + change, 0)))
    if hint is not None and kind is Hint.UNREACHABLE:
        return hint._replace(endpoint=Endpoint(hint.endpoint.host, _DEAD_PORT, hint.endpoint.rack))
    return hint


def _hint(route: Route, leader: Leader) -> LeaderHint | None:
    endpoint = route.endpoint(leader.node)
    return None if endpoint is None else LeaderHint(leader.node, leader.epoch, endpoint)
