"""One long conversation on a link, and what must come out at both ends."""

from collections.abc import Sequence
from typing import NamedTuple

from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.core.link.held import Held
from tests.core.samples import (
    BROKER_3_6,
    FENCED,
    NOT_LEADER,
    USES_HINTS,
    answer,
    fetch_answer,
    fetch_request,
    metadata_answer,
    produce_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)

#: Where the leaders are that the hints of :func:`decide` name.
NODES = {
    2: Endpoint("two.example", 9092, "rack-b"),
    3: Endpoint("three.example", 9093, None),
}
ONE, TWO = topic_id(1), topic_id(2)


class Exchanged(NamedTuple):
    """A request as the client sends it and as the broker must get it; the same downwards.

    Without a response (acks=0), both last are empty.
    """

    asked: bytes
    sent: bytes
    answered: bytes
    got: bytes


def same(asked: bytes, answered: bytes) -> Exchanged:
    """Return an exchange that is forwarded unchanged."""
    return Exchanged(asked, asked, answered, answered)


def decide(held: Held) -> Sequence[LeaderHint | None]:
    """Give a hint for each failure: partition 1 is led by node 2, others by node 3."""
    return [
        LeaderHint(2, 7, NODES[2]) if failure.partition == 1 else LeaderHint(3, 9, NODES[3])
        for failure in held.scanned.failures
    ]


def conversation() -> list[Exchanged]:
    """Return exchanges of every kind: hinted, restamped, passed, without an answer."""
    raised = {**BROKER_3_6, 0: 10, 1: 16}
    return [
        Exchanged(
            asked := request(18, 3, 1, **USES_HINTS),
            asked,
            versions_answer(3, 1, BROKER_3_6),
            versions_answer(3, 1, raised),
        ),
        same(request(17, 1, 2, mechanism="PLAIN"), answer(17, 1, 2)),
        same(
            request(3, 12, 3, topics=None),
            metadata_answer(12, 3, {"t": {0: (1, 5), 1: (2, 6)}}),
        ),
        # Produce that succeeds, on a version that is raised and on one that is not.
        Exchanged(
            produce_request(10, 4),
            produce_request(9, 4),
            produce_answer(9, 4, {0: 0}),
            produce_answer(9, 4, {0: 0}),
        ),
        same(produce_request(7, 5, client_id=None), produce_answer(7, 5, {0: NOT_LEADER})),
        # acks=0 has no answer; what follows it must still find its own.
        Exchanged(produce_request(10, 6, acks=0), produce_request(9, 6, acks=0), b"", b""),
        Exchanged(
            produce_request(10, 7, transactional_id="tx"),
            produce_request(9, 7, transactional_id="tx"),
            produce_answer(9, 7, {0: NOT_LEADER, 1: NOT_LEADER, 2: 0}),
            produce_answer(
                10,
                7,
                {0: NOT_LEADER, 1: NOT_LEADER, 2: 0},
                leaders={0: (3, 9), 1: (2, 7)},
                nodes={3: NODES[3], 2: NODES[2]},
            ),
        ),
        Exchanged(
            fetch_request(16, 8, {(ONE, 0): 5, (TWO, 1): 6}, session=(0, 0)),
            fetch_request(15, 8, {(ONE, 0): 5, (TWO, 1): 6}, session=(0, 0)),
            fetch_answer(15, 8, [(ONE, 0, 0, bytes(90)), (TWO, 1, 0, b"")], session_id=4),
            fetch_answer(15, 8, [(ONE, 0, 0, bytes(90)), (TWO, 1, 0, b"")], session_id=4),
        ),
        Exchanged(
            fetch_request(16, 9, {}, session=(4, 1)),
            fetch_request(15, 9, {}, session=(4, 1)),
            fetch_answer(15, 9, [(ONE, 0, 0, bytes(40)), (TWO, 1, FENCED, b"")], session_id=4),
            fetch_answer(
                16,
                9,
                [(ONE, 0, 0, bytes(40)), (TWO, 1, FENCED, b"")],
                session_id=4,
                leaders={1: (2, 7)},
                nodes={2: NODES[2]},
            ),
        ),
        # Fetch 12 of a client that said nothing of itself that we know: not looked at.
        same(fetch_request(12, 10, {("t", 1): 6}), fetch_answer(12, 10, [("t", 1, FENCED, b"")])),
        # APIs that are not known, and a version beyond any.
        same(
            b"\0\0\0\x0b\x27\x10\0\x63\0\0\0\x0b\xff\xffx",
            b"\0\0\0\x07\0\0\0\x0babc",
        ),
        same(b"\0\0\0\x08\xff\xff\xff\xff\0\0\0\x0c", b"\0\0\0\x04\0\0\0\x0c"),
        same(request(8, 8, 13, group_id="g"), answer(8, 8, 13)),
    ]
