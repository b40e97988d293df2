"""What clients do around leader moves with hints, observed on the wire for the index of releases.

The mock cluster has three brokers, each of which leads a partition. Metadata is slow while the
first partition moves, so that what happens then is due to the hint.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from leader_hints.apis.keys import ApiKey
from leader_hints.conformance.lab import Lab
from leader_hints.conformance.traits import Answered, follow
from leader_hints.conformance.wire_log import Seen
from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from leader_hints.settings.hold import HoldSettings
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.waiting import until

#: Starts a process with the clients of a release; its log goes to the folder.
Start = Callable[[Path], ClientProcess]

_TOPIC: Final = "t"
_PARTITIONS: Final = (0, 1, 2)
_APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
_SLOW_METADATA_MS: Final = 2000
_RATE: Final = 30.0
#: Moves of the first partition that are looked at.
_ROUNDS: Final = 4
_REST: Final = 1.5
#: Seconds after a move in which what happens is due to it.
_AFTER: Final = 3.5
#: Seconds for a client to go on after all; several times what the slowest needs.
_PATIENCE: Final = 20.0


@dataclass(frozen=True)
class Moves:
    """What a client did in several moves. Times are those of the soonest, in milliseconds: a client
    that waits never comes before its wait is over, and another late only where the machine is.
    ``None``: never.

    ``produce_hints``, ``fetch_hints``: in how many of the moves that refused it it came to the
    hinted leader before Metadata. ``produce_refused``, ``fetch_refused``: how many refused it.
    ``fetch_ms``: from its refusal to its next Fetch of the partition. ``validated_ms``: from the
    answer to its OffsetForLeaderEpoch to that. ``others_stopped``: in how many moves nothing went
    on with the partitions that stayed where they were. ``torn``: in how many the producer
    connected again to a broker that had no part in the move.
    """

    rounds: int
    produce_hints: int
    produce_refused: int
    fetch_hints: int
    fetch_refused: int
    fetch_ms: float | None
    validated_ms: float | None
    others_stopped: int
    torn: int

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return asdict(self)


def observe_moves(start: Start, folder: Path) -> Moves:
    """Run a producer and a consumer through moves of the first partition."""
    found: list[_Round] = []
    with _running(start, folder) as (lab, _):
        leader = 1
        for number in range(_ROUNDS):
            after = (2, 3)[number % 2] if leader == 1 else 1
            slow = lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA_MS)
            since = time.monotonic()
            lab.move_leader(_TOPIC, 0, after)
            time.sleep(_AFTER)
            lab.end(slow)
            found.append(_Round(lab.seen(), since, {leader, after}))
            leader = after
            time.sleep(_REST)
    answered = {api: [r.answered[api] for r in found if r.answered[api]] for api in _APIS}
    produced, fetched = (sum(bool(a and a.before_metadata) for a in answered[api]) for api in _APIS)
    return Moves(
        rounds=_ROUNDS,
        produce_hints=produced,
        produce_refused=len(answered[ApiKey.PRODUCE]),
        fetch_hints=fetched,
        fetch_refused=len(answered[ApiKey.FETCH]),
        fetch_ms=_soonest([r.fetch_ms for r in found]),
        validated_ms=_soonest([r.validated_ms for r in found]),
        others_stopped=sum(r.others_stopped for r in found),
        torn=sum(r.torn for r in found),
    )


def ms_until_equal_epoch_is_followed(start: Start, folder: Path) -> float | None:
    """Return how long a client reads nothing whose leader moves to the epoch that it knows.

    A hint sends it to an address where nobody listens, under the next epoch; then the leader
    moves, which makes that epoch true elsewhere. ``None``: it does not read again in 20 seconds.
    """
    with _running(start, folder) as (lab, _):
        since = time.monotonic()
        for api in _APIS:
            name = api.name.capitalize()
            lab.inject(
                "error", apis=[name], topics=[_TOPIC], partitions=[0], hint="unreachable", times=1
            )

        def misled() -> bool:
            found = follow(lab.seen(), ApiKey.FETCH, _TOPIC, since)
            return found is not None and found.hint is not None

        until(misled, "a hint was sent", _PATIENCE)
        time.sleep(1)
        lab.clear()
        # Not where the hint led.
        lab.move_leader(_TOPIC, 0, 3)
        moved, end = time.monotonic(), time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            served = _first(lab.seen(), moved, lambda s: _serves(s, "Fetch", 0))
            if served is not None:
                return round((served - moved) * 1000)
            time.sleep(0.05)
    return None


def follows_equal_hint(start: Start, folder: Path) -> bool | None:
    """Return whether a consumer goes where a hint leads whose epoch it knows already.

    KIP-951 has clients take a leader only with a newer epoch. ``None``: it met no hint.
    """
    with _running(start, folder) as (lab, _):
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA_MS)
        since = time.monotonic()
        lab.inject("error", apis=["Fetch"], topics=[_TOPIC], partitions=[0], hint="equal", times=1)
        time.sleep(_AFTER)
        found = follow(lab.seen(), ApiKey.FETCH, _TOPIC, since)
    return None if found is None or found.hint is None else found.before_metadata


def reads_without_topic_ids(start: Start, folder: Path) -> bool:
    """Return whether a client reads where brokers offer Fetch 16, and Metadata has no topic ids."""
    old = {"Metadata": 9}
    with MockCluster(1, {_TOPIC: 1}, old) as cluster, start(folder) as process:
        producer = process.produce(ProducerSpec(cluster.bootstrap, _TOPIC, acks="1", rate=_RATE))
        producer.wait_acked(10)
        consumer = process.begin_to_consume(ConsumerSpec(cluster.bootstrap, _TOPIC))
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end and len(consumer.consumed) < 10:
            time.sleep(0.05)
        return len(consumer.consumed) >= 10


@contextmanager
def _running(start: Start, folder: Path) -> Iterator[tuple[Lab, ClientProcess]]:
    """A producer and a consumer of all partitions, which both work when the block begins."""
    hold = HoldSettings(deadline_ms=_SLOW_METADATA_MS, link_ms_per_second=1000)
    topics = {_TOPIC: len(_PARTITIONS)}
    with (
        MockCluster(3, topics, BEFORE_HINTS) as cluster,
        Lab(cluster, hold) as lab,
        start(folder) as process,
    ):
        # An idempotent producer needs what the mock brokers do not have.
        process.produce(ProducerSpec(lab.bootstrap, _TOPIC, _PARTITIONS, acks="1", rate=_RATE))
        process.consume(ConsumerSpec(lab.bootstrap, _TOPIC, _PARTITIONS))

        def works() -> bool:
            seen = lab.seen()
            return all(
                any(_serves(s, api.name.capitalize(), partition) for s in seen)
                for api in _APIS
                for partition in _PARTITIONS
            )

        until(works, "all partitions are written and read")
        time.sleep(_REST)
        yield lab, process


class _Round:
    """What was seen of one move. ``nodes``: the former leader and the new one."""

    def __init__(self, seen: list[Seen], since: float, nodes: set[int]) -> None:
        self._seen = seen
        self._since = since
        self.answered: dict[ApiKey, Answered | None] = {
            api: follow(seen, api, _TOPIC, since) for api in _APIS
        }
        refused = _first(seen, since, lambda s: _refuses(s))
        fetches = None if refused is None else _first(seen, refused, lambda s: _fetches(s))
        self.fetch_ms = _ms(refused, fetches)
        validated = _first(
            seen, since, lambda s: s.api == "OffsetForLeaderEpoch" and s.response is not None
        )
        self.validated_ms = _ms(validated, fetches) if _is_before(validated, fetches) else None
        # What comes behind Metadata on a connection waits for it: so much for one broker.
        within = [s for s in seen if 0.3 <= s.at - since <= _SLOW_METADATA_MS / 1000]
        self.others_stopped = not all(
            any(
                _serves(s, api.name.capitalize(), partition) for s in within for partition in (1, 2)
            )
            for api in _APIS
        )
        self.torn = self._torn({f"broker-{node}" for node in nodes})

    def _torn(self, moved: set[str]) -> bool:
        """Whether the producer has another link to a broker beside the move than before."""
        beside = [s for s in self._seen if s.api == "Produce" and s.route not in moved]
        before = {s.link for s in beside if s.at < self._since}
        known = {s.route for s in beside if s.at < self._since}
        return any(s.link not in before and s.route in known for s in beside)


def _serves(seen: Seen, api: str, partition: int) -> bool:
    """Whether it is a success of a partition."""
    response = seen.response
    return (
        seen.api == api and response is not None and response.errors.get((_TOPIC, partition)) == 0
    )


def _refuses(seen: Seen) -> bool:
    """Whether it refuses a Fetch of the partition that moved."""
    response = seen.response
    return seen.api == "Fetch" and response is not None and response.errors.get((_TOPIC, 0), 0) != 0


def _fetches(seen: Seen) -> bool:
    """Whether it asks for the partition that moved."""
    return seen.api == "Fetch" and seen.response is None and (_TOPIC, 0) in seen.partitions


def _first(seen: list[Seen], since: float, chosen: Callable[[Seen], bool]) -> float | None:
    return next((s.at for s in seen if s.at > since and chosen(s)), None)


def _is_before(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and first <= second


def _ms(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (second - first) * 1000


def _soonest(times: list[float | None]) -> float | None:
    known = [one for one in times if one is not None]
    return round(min(known)) if known else None
