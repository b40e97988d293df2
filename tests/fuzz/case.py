"""One link, and the bytes that its two sides send in turn."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Self

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.core.brokers import NAMES, route_before
from tests.core.conversation import NODES
from tests.core.links import Driven
from tests.core.rules import DEFAULT_RULES

Side = Literal["up", "down"]
Step = tuple[Side, bytes]

#: Kinds of links: release and mode. ``new`` is a link in front of a broker of which nothing is
#: known; on those with a plus topic ids are synthetic.
KINDS: dict[str, tuple[str, Mode]] = {
    "2.4": ("2.4", Mode.ON),
    "2.6": ("2.6", Mode.ON),
    "2.8": ("2.8", Mode.ON),
    "3.4": ("3.4", Mode.ON),
    "3.6": ("3.6", Mode.ON),
    "3.7": ("3.7", Mode.ON),
    "2.6+": ("2.6+", Mode.ON),
    "2.8+": ("2.8+", Mode.ON),
    "new": ("3.6", Mode.ON),
    "observe": ("3.6", Mode.OBSERVE),
    "off": ("3.6", Mode.OFF),
}
#: The default of limits.request_bytes.
_LARGEST_REQUEST = 104_857_600
_BUFFER = 1 << 17
_LOOKS = 0x5EEC
#: Beyond the longest hold.
_LATER = 60.0


@dataclass(frozen=True)
class Case:
    """``seed``: of the hints that held responses get. ``hold_queue``: whether a queue gives them.

    ``per_link`` and ``total``: the budget.
    """

    kind: str
    seed: int
    hold_queue: bool
    per_link: int
    total: int
    steps: Sequence[Step]

    def with_steps(self, steps: Sequence[Step]) -> Self:
        """Return the same with other steps."""
        return replace(self, steps=steps)

    def save(self, file: Path) -> None:
        """Write it to be read again."""
        values = asdict(self) | {"steps": [(side, data.hex()) for side, data in self.steps]}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values, indent=1) + "\n")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a case that was written."""
        values = json.loads(file.read_text())
        steps = [(side, bytes.fromhex(data)) for side, data in values.pop("steps")]
        return cls(**values, steps=steps)


class Outcome:
    """What a link did: all that went in and came out, and what was given on the way.

    ``most_used``: the most that was reserved of the budget at any time.
    """

    def __init__(self, case: Case) -> None:
        self.up = bytearray()
        self.down = bytearray()
        self.hints: list[LeaderHint] = []
        self.most_used = 0
        self._chance = random.Random(case.seed)
        self._hold_queue = HoldQueue(DEFAULT_RULES) if case.hold_queue else None
        self._now = 0.0
        self.driven = Driven(
            _route(case, self._chance),
            decide=self._decide,
            budget=Budget(case.per_link, case.total),
            buffer_size=_BUFFER,
            largest_request=_LARGEST_REQUEST,
            # By a chance of its own: cases that were kept stay the same.
            looks_from=1 if random.Random(case.seed ^ _LOOKS).random() < 0.5 else None,
            room=_BUFFER,
        )

    @property
    def faulty(self) -> bool:
        """Whether a side sent what ends the link."""
        link = self.driven.link
        return link.requests.fault is not None or link.responses.fault is not None

    def step(self, side: Side, data: bytes) -> None:
        """Let one side send."""
        if side == "up":
            self.up += data
            self.driven.up(data)
        else:
            self.down += data
            self.driven.down(data)
        self.driven.link.state.snooped.clear()
        self.most_used = max(self.most_used, self.driven.budget.used)

    def end(self) -> None:
        """Let what is held go on, and both sides end."""
        while self.driven.held is not None:
            self.driven.release(self._give(self.driven.held))
            self.most_used = max(self.most_used, self.driven.budget.used)
        self.driven.end()
        self.driven.link.close()

    def _decide(self, held: Held) -> Sequence[LeaderHint | None] | None:
        if self._hold_queue is not None:
            return self._asked(self._hold_queue, held)
        return None if self._chance.random() < 0.1 else self._give(held)

    def _asked(self, hold_queue: HoldQueue, held: Held) -> Sequence[LeaderHint | None]:
        hints = hold_queue.submit(held, self._now)
        if hints is None:
            self._now += _LATER
            ((_, hints),) = hold_queue.review(self._now)
        hold_queue.events.clear()
        self.hints += [hint for hint in hints if hint is not None]
        return hints

    def _give(self, held: Held) -> Sequence[LeaderHint | None]:
        detached = held.link.route.mode is Mode.OBSERVE
        if detached or held.unhinted is not None or self._chance.random() < 0.3:
            return [None] * len(held.scanned.failures)
        hints = [self._hint() for _ in held.scanned.failures]
        self.hints += [hint for hint in hints if hint is not None]
        return hints

    def _hint(self) -> LeaderHint | None:
        node = self._chance.choice((0, 2, 3))
        return LeaderHint(node, self._chance.randrange(99), NODES[node]) if node else None


def play(case: Case) -> Outcome:
    """Let both sides send; what a link raises is raised."""
    outcome = Outcome(case)
    for side, data in case.steps:
        outcome.step(side, data)
        if outcome.faulty:
            # As the pump does: nothing more is received.
            break
    outcome.end()
    return outcome


def _route(case: Case, chance: random.Random) -> Route:
    release, mode = KINDS[case.kind]
    route = route_before(release, mode)
    # By a chance of its own: cases that were kept stay the same.
    route.config = replace(route.config, settle=random.Random(~case.seed).random() < 0.5)
    route.broker.node = 1
    route.broker.reachable = True
    if case.kind == "new":
        route.broker.plan = route.broker.view = None
    elif chance.random() < 0.5 and not release.startswith(("2.4", "2.6")):
        assert route.broker.view is not None
        for topic_id, name in NAMES.items():
            route.broker.view.learn(
                TopicMetadata(0, name, topic_id, (Led(0, 2, 9), Led(1, 3, 9))), 2
            )
    # Successes are looked for from the start, and not after an error only.
    route.awaited = chance.random() < 0.3
    return route
