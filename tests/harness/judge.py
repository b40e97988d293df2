"""Hints held against what the cluster really had."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.harness.history import LeaderHistory
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


@dataclass(frozen=True)
class Judgement:
    """How many failed partitions got a hint, and why the others got none."""

    given: int
    wrong: Sequence[LogLine]
    missed: Counter[str]
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
    given = fleet.events("hint_given")
    missed = fleet.events("hint_missed")
    wrong = [
        line
        for line in given
        if terms.get((line["topic"], line["partition"]), {}).get(line["epoch"]) != line["leader"]
    ]
    holds = [float(line["hold_ms"]) for line in (*given, *missed)]
    return Judgement(
        len(given), wrong, Counter(line["reason"] for line in missed), max(holds, default=0.0)
    )
