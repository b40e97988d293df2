"""Hints held against what the cluster really had."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from tests.harness.history import LeaderHistory, Term
from tests.harness.proxyproc import LogLine, ProxyFleet

REASONS = frozenset(
    {
        "version_without_field",
        "not_usable_by_client",
        "no_fresher_view",
        "not_authorized",
        "hold_expired",
        "leader_not_ready",
        "no_leader",
        "no_endpoint",
        "replica",
        "budget",
        "link_hold_spent",
        "hints_off",
    }
)

#: A move that a proxy learnt so lately is taken for the one that the error is of; what it learns
#: may be a second or two old when brokers lag.
_RECENT_S = 3.0
_HALF_DAY_S = 12 * 3600.0


@dataclass(frozen=True)
class Judgement:
    """How many failed partitions got a hint, and why the others got none. ``waited``: what came of
    errors that wait for settled Metadata.
    """

    given: int
    wrong: Sequence[LogLine]
    missed: Counter[str]
    waited: Counter[str]
    longest_hold_ms: float

    def __str__(self) -> str:
        errors = self.given + self.missed.total()
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.missed.most_common())
        return (
            f"{errors} errors, {self.given} hints, {len(self.wrong)} of them wrong"
            f"{', missed: ' + reasons if reasons else ''}; "
            f"longest hold {self.longest_hold_ms:.0f} ms"
        )


def judge(fleet: ProxyFleet, history: LeaderHistory) -> Judgement:
    """Judge every hint that the proxies gave or missed, from their log lines."""
    terms = history.terms()
    routes = [address for process in fleet.processes for address, _ in process.routes]
    nodes = {
        f"{host}:{port}": node for (host, port), node in zip(routes, history.nodes, strict=True)
    }
    given = fleet.events("hint_given")
    missed = fleet.events("hint_missed")
    wrong = [
        line
        for line in given
        if is_wrong(line, nodes[line["route"]], terms.get((line["topic"], line["partition"]), {}))
    ]
    holds = [float(line["hold_ms"]) for line in (*given, *missed)]
    return Judgement(
        len(given),
        wrong,
        Counter(line["reason"] for line in missed),
        Counter(line["settling"] for line in missed if line["settling"]),
        max(holds, default=0.0),
    )


def is_wrong(line: LogLine, node: int, terms: Mapping[int, Term]) -> bool:
    """Whether a hint names who never led under its epoch, or is older than its error.

    ``node``: the broker that answered. ``terms``: those of the partition, by epoch. Where a client
    says no epoch, a broker that led later than the hint says must have been asked before.
    """
    epoch = line["epoch"]
    if epoch not in terms or terms[epoch].leader != line["leader"]:
        return True
    if line["client_epoch"] >= 0:
        return False
    answered = datetime.fromisoformat(line["timestamp"]).astimezone()
    failed = answered - timedelta(milliseconds=line["hold_ms"])
    return any(
        later > epoch and term.leader == node and _seconds(term.began, failed) > _RECENT_S
        for later, term in terms.items()
    )


def _seconds(since: time, until: datetime) -> float:
    """How long it is since a time of day, which was less than half a day ago or ahead."""
    passed = until - datetime.combine(until.date(), since, until.tzinfo)
    return (passed.total_seconds() + _HALF_DAY_S) % (2 * _HALF_DAY_S) - _HALF_DAY_S
