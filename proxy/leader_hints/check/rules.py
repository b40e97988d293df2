"""From facts to findings: all rules, in the order in which their findings are reported.

The facts are gathered by :mod:`leader_hints.check.route_probe`; here they are judged.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leader_hints.check.advertised_rules import (
    judge_other_addresses,
    judge_own_address,
    judge_shared_addresses,
)
from leader_hints.check.broker_rules import (
    judge_leaders,
    judge_limits,
    judge_racks,
    judge_upstream,
)
from leader_hints.check.facts import MachineFacts, RouteFacts
from leader_hints.check.findings import Finding, Severity, finding
from leader_hints.check.host_rules import judge_clock, judge_descriptors
from leader_hints.check.listening_rules import judge_listening
from leader_hints.core.mode import Mode
from leader_hints.core.versions.plan import plan_for


class Bounds(NamedTuple):
    """What the settings allow: how long a response is held, how large a request may be."""

    kraft_hold_ms: int
    request_bytes: int


def judge(
    routes: Sequence[RouteFacts], machine: MachineFacts, bounds: Bounds
) -> tuple[Finding, ...]:
    """Return all findings."""
    found = [finding for route in routes for finding in _judge_route(route, routes, bounds)]
    return (*found, *judge_descriptors(machine), *judge_clock(machine))


def must_fix(findings: Sequence[Finding]) -> bool:
    """Whether a finding must be fixed."""
    return any(finding.severity is Severity.PROBLEM for finding in findings)


def _judge_route(
    route: RouteFacts, routes: Sequence[RouteFacts], bounds: Bounds
) -> Iterator[Finding]:
    yield from _judge_mode(route)
    yield from judge_upstream(route)
    yield from judge_listening(route)
    yield from judge_limits(route, bounds.request_bytes)
    plan = plan_for(route.met.maxima)
    # If the broker gives hints, or there is none, the clients' way does not matter.
    if route.known and plan.rows:
        yield from judge_leaders(route, bounds.kraft_hold_ms)
        yield from judge_racks(route)
        yield from judge_own_address(route, routes)
        yield from judge_other_addresses(route, routes)
        yield from judge_shared_addresses(route)


def _judge_mode(route: RouteFacts) -> Iterator[Finding]:
    if route.mode is not Mode.ON:
        yield finding("hints_not_given", route.name, mode=route.mode)
