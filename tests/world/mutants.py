"""Defects that are put into the product on purpose: the world must find each of them.

``worlds``: within so many worlds, from seed 0 on. What is patched is named here and nowhere else; a
name that is gone is an error, so that a mutant never stands for nothing.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from leader_hints.apis.list_offsets import Partition
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.doubts import Doubts
from leader_hints.core.cluster.known_topics import KnownTopics
from leader_hints.core.cluster.leader_reports import LeaderReports
from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.route import Route


class Patch(NamedTuple):
    """``owner`` and ``name``: what is replaced, ``by`` what."""

    owner: Any
    name: str
    by: Any


class Mutant(NamedTuple):
    """``text``: what is wrong with it. ``worlds``: 0 where it is not found yet."""

    text: str
    worlds: int
    patches: tuple[Patch, ...]


_begin_queue = HoldQueue.__init__
_agrees = LeaderReports.agrees
_conclude = broker_identity.conclude


def _hold_long(queue: HoldQueue, rules: HoldRules) -> None:
    _begin_queue(queue, replace(rules, deadline=1.0, link_second=10.0, shared=1.0, grace=1.0))


def _take_any(reports: LeaderReports, topic: Any, led: Any, source: Any) -> bool:
    """In place of ``agrees``: what differs is taken, at whatever epoch."""
    if (led.leader, led.epoch) != (topic.leaders[led.partition], topic.epochs[led.partition]):
        reports.newer(topic, led, source)
    return _agrees(reports, topic, led, source)


def _conclude_at_once(broker: BrokerState, asked: broker_identity.Probe, *answered: Any) -> None:
    """In place of ``conclude``: who is left when others are ruled out is proved to be that."""
    errors: dict[Partition, int] = answered[0]
    _conclude(broker, asked, errors)
    broker.guessed = False


def _true(*_: Any) -> bool:
    return True


def _false(*_: Any, **__: Any) -> bool:
    return False


_NO_DOUBTS = Patch(Doubts, "contradicted", _false)
_NAMES_PROVE = Patch(KnownTopics, "may_be_former", _false)

MUTANTS: Final = {
    "holds without bound": Mutant(
        "responses are held ten times as long", 10, (Patch(HoldQueue, "__init__", _hold_long),)
    ),
    "any hint is news": Mutant(
        "what the view has is a hint, at any epoch and without a proof",
        10,
        (Patch(hint_rules, "_is_good", _true),),
    ),
    "one endpoint for all": Mutant(
        "a hint comes with the endpoint of another broker",
        20,
        (
            Patch(
                Route,
                "endpoint",
                lambda route, node: next(iter(route.broker.endpoints.values()), None),
            ),
        ),
    ),
    "no doubts": Mutant(
        "what brokers contradict, of topics without ids, is given all the same", 60, (_NO_DOUBTS,)
    ),
    "former topic's hints": Mutant(
        "a name counts as proof that the topic is the one that the view has",
        0,
        (_NAMES_PROVE,),
    ),
    "newer epoch without proof": Mutant(
        "an epoch above the client's needs no proof",
        20,
        (
            Patch(
                hint_rules,
                "_is_good",
                lambda route, partition, leader, recent: leader.epoch > partition.newest,
            ),
        ),
    ),
    "guess as proof": Mutant(
        "the node that is left counts as proved",
        40,
        (Patch(BrokerState, "proved_node", property(lambda broker: broker.node)),),
    ),
    "view takes any epoch": Mutant(
        "the view goes back to a lower epoch", 0, (Patch(LeaderReports, "agrees", _take_any),)
    ),
    "exclusion is proof": Mutant(
        "a broker that refuses is another at once, and who is left is proved",
        40,
        (Patch(broker_identity, "conclude", _conclude_at_once),),
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have a defect in the product for a while.

    :raises AttributeError: what is to be replaced is not there any more.
    """
    with ExitStack() as stack:
        for owner, attribute, by in MUTANTS[name].patches:
            stack.enter_context(patch.object(owner, attribute, by))
        yield
