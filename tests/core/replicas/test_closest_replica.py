"""Which replica a consumer is to read from.

KIP-392 (fetch from the closest replica) gives the cases; its section "Public interfaces" has the
leader choose among replicas that are in sync, by the rack that the consumer names.
"""

from collections import Counter

import pytest

from leader_hints.core.replicas.closest_replica import (
    Choice,
    Consumer,
    Known,
    Outcome,
    closest,
    comes_back,
    ends_where_offsets_lack,
    may_be_deleted,
)

RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}
IN_B = Consumer("b", b"host client")


def _closest(
    own: int,
    in_sync: tuple[int, ...],
    consumer: Consumer = IN_B,
    dead: tuple[int, ...] = (),
    lately: tuple[int, ...] = (),
    racks: dict[int, str] = RACKS,
) -> Choice:
    return closest(
        own,
        Known(1, in_sync),
        consumer,
        lambda node: racks.get(node, ""),
        lambda node: node not in dead,
        lately,
    )


@pytest.mark.parametrize(
    ("own", "in_sync", "more", "choice"),
    [
        # The leader names a follower in the consumer's rack.
        (1, (1, 2), {}, Choice(2, Outcome.NAMED)),
        # One out of sync, gone, or refused lately is not named.
        (1, (1, 4), {}, Choice(None, Outcome.NO_REPLICA)),
        (1, (1, 2), {"dead": (2,)}, Choice(None, Outcome.NO_REPLICA)),
        (1, (1, 2), {"lately": (2,)}, Choice(None, Outcome.PAUSED)),
        (1, (1, 2, 3), {"lately": (2,)}, Choice(3, Outcome.NAMED)),
        # The leader's own rack, or nothing known of it.
        (1, (1, 2), {"consumer": Consumer("a", b"")}, Choice(None, Outcome.SAME_RACK)),
        (1, (1, 2), {"racks": {2: "b"}}, Choice(None, Outcome.NO_RACK)),
        (1, (1, 2), {"consumer": Consumer("d", b"")}, Choice(None, Outcome.NO_REPLICA)),
        # A follower in the rack keeps its consumers as long as it is in sync.
        (2, (1, 2), {}, Choice(None, Outcome.FOLLOWER)),
        (2, (1,), {}, Choice(1, Outcome.RETURNED)),
        (2, (1,), {"lately": (1,)}, Choice(None, Outcome.PAUSED)),
        # In another rack it names one as well: a former leader may go on to be asked (KAFKA-9338).
        (4, (1, 2, 4), {}, Choice(2, Outcome.NAMED)),
        (4, (1, 4), {}, Choice(None, Outcome.NO_REPLICA)),
        (4, (1, 4), {"consumer": Consumer("a", b"")}, Choice(1, Outcome.NAMED)),
        (2, (1, 3), {}, Choice(3, Outcome.NAMED)),
    ],
)
def test_the_rule(
    own: int, in_sync: tuple[int, ...], more: dict[str, object], choice: Choice
) -> None:
    assert _closest(own, in_sync, **more) == choice  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        ("kafka-python/3.0.12", True),
        ("kafka-python", True),
        ("confluent-kafka-python/2.16", False),
        ("", False),
    ],
)
def test_which_clients_come_back_to_the_leader(software: str, expected: bool) -> None:
    assert comes_back(software) is expected


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        *((f"sarama/v1.{version}", True) for version in ("0.9", "46.3", "61.0", "61")),
        *((f"sarama/v{version}", False) for version in ("1.61.1", "1.100.0", "2.0.0")),
        ("sarama/1.61.0", True),
        ("sarama/1.61.1", False),
        ("sarama/dev", True),
        ("sarama/", True),
        ("sarama", False),
        ("apache-kafka-java/1.0.0", False),
        ("", False),
    ],
)
def test_which_clients_end_where_offsets_lack(software: str, expected: bool) -> None:
    assert ends_where_offsets_lack(software) is expected


def test_clients_are_spread_and_each_stays_where_it_is() -> None:
    clients = [Consumer("b", b"client %d" % number) for number in range(400)]
    named = {client: _closest(1, (1, 2, 3), client).node for client in clients}
    assert named == {client: _closest(1, (3, 1, 2), client).node for client in clients}
    assert min(Counter(named.values()).values()) > 100
    # With another replica nobody moves but to that one.
    racks = {**RACKS, 5: "b"}
    after = {client: _closest(1, (1, 2, 3, 5), client, racks=racks).node for client in clients}
    assert {after[client] for client in clients if after[client] != named[client]} == {5}


@pytest.mark.parametrize(
    ("position", "start", "high", "kept"),
    [
        # Nothing was deleted yet.
        (0, 0, 100, True),
        (None, 0, 100, True),
        # The newer half of the log is left on every replica; of the older one that is not known.
        (160, 100, 200, True),
        (140, 100, 200, False),
        (None, 100, 200, False),
    ],
)
def test_a_follower_may_have_deleted_what_the_leader_still_has(
    position: int | None, start: int, high: int, kept: bool
) -> None:
    """KIP-392, case 3 (offset below the follower's log): librdkafka then resets its position."""
    assert may_be_deleted(position, start, high) is not kept
