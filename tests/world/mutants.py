"""Defects that are put into the core on purpose: the world must find each of them.

``worlds``: within so many worlds, from seed 0 on. What is patched is named here and nowhere else.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.doubts import Doubts
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.route import Route
from tests.world.product import hold_internals

_hold = hold_internals()


class Mutant(NamedTuple):
    """``owner`` and ``name``: what is replaced, ``by`` what."""

    text: str
    worlds: int
    owner: Any
    name: str
    by: Any


def _takes_any_epoch(former: Callable[..., bool]) -> Callable[..., bool]:
    def agree(view: LeaderView, topic: Any, led: Any, source: Any, teller: Any) -> bool:
        known = topic.leaders[led.partition], topic.epochs[led.partition]
        if led.leader >= 0 and known != (led.leader, led.epoch):
            view._replace(topic, led)
            return True
        return former(view, topic, led, source, teller)

    return agree


def _guess_over_proof(route: Route) -> None:
    left = route.endpoints.keys() - route.others
    if len(left) == 1:
        (route.node,) = left
        route.guessed = False


MUTANTS: Final = {
    "takes lower epochs": Mutant(
        "the view takes what any broker says, at any epoch",
        40,
        LeaderView,
        "_agree",
        _takes_any_epoch(LeaderView._agree),
    ),
    "exclusion is a proof": Mutant(
        "the only node that is left is taken for proved",
        40,
        broker_identity,
        "_guess",
        _guess_over_proof,
    ),
    "holds without bound": Mutant(
        "no hold ends by its deadline",
        10,
        _hold.held_response,
        "over_at",
        lambda held, ahead: held.since + 3.0,
    ),
    "hints of the former topic": Mutant(
        "a name is taken for the topic that the view knows",
        60,
        LeaderView,
        "may_be_former",
        lambda view, topic: False,
    ),
    "no doubts": Mutant(
        "what brokers contradict is not in doubt",
        60,
        Doubts,
        "contradicted",
        lambda doubts, place, claim, teller: False,
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have a defect in the core for a while."""
    mutant = MUTANTS[name]
    with patch.object(mutant.owner, mutant.name, mutant.by):
        yield
