"""Defects that are put into the core on purpose: the world must find each of them.

``worlds``: within so many worlds, from seed 0 on. What is patched is named here and nowhere else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.route import Route


class Mutant(NamedTuple):
    """``owner`` and ``name``: what is replaced, ``by`` what."""

    text: str
    worlds: int
    owner: Any
    name: str
    by: Any


_begin_queue = HoldQueue.__init__


def _hold_long(queue: HoldQueue, rules: HoldRules) -> None:
    _begin_queue(queue, replace(rules, deadline=1.0, link_second=10.0, shared=1.0, grace=1.0))


MUTANTS: Final = {
    "holds without bound": Mutant(
        "responses are held ten times as long", 10, HoldQueue, "__init__", _hold_long
    ),
    "any hint is news": Mutant(
        "what the view has is a hint, at any epoch and without a proof",
        10,
        hint_rules,
        "_is_good",
        lambda route, partition, leader, recent: True,
    ),
    "one endpoint for all": Mutant(
        "a hint comes with the endpoint of another broker",
        20,
        Route,
        "endpoint",
        lambda route, node: next(iter(route.broker.endpoints.values()), None),
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have a defect in the core for a while."""
    mutant = MUTANTS[name]
    with patch.object(mutant.owner, mutant.name, mutant.by):
        yield
