"""A client in front of a cluster in one scenario: what it has done so far, and waiting for more.

Tested in ``tests/mock/test_conformance.py``.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from leader_hints.apis.keys import ApiKey
from leader_hints.conformance import traits as judged
from leader_hints.conformance.traits import Trait

if TYPE_CHECKING:
    from leader_hints.conformance.lab import Lab

#: What clients are judged by.
APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
#: Milliseconds by which Metadata is delayed, so that a client that goes on sooner used its hint.
SLOW_METADATA: Final = 2000
#: Seconds for which a client is left alone before something is done to it.
SETTLE: Final = 0.5
#: Seconds between two looks at what a client has done.
LOOK: Final = 0.05
#: Seconds for a client to recover.
_RECOVER: Final = 12.0

#: What came of the first refusal of each API that a client uses.
Found = Mapping[ApiKey, judged.Answered | None]


@dataclass(frozen=True, slots=True)
class Trial:
    """A client in front of a cluster in one scenario.

    ``topic``: the scenario's own, whose partition 0 the first of ``nodes`` leads.
    ``before_move``: does what goes before a move of that to a node. ``apis``: what the client is
    known to use.
    """

    lab: "Lab"
    command: Sequence[str]
    topic: str
    nodes: Sequence[int]
    before_move: Callable[[str, int], None]
    apis: frozenset[str]

    def works(self) -> set[str]:
        """Return the APIs that the client has used without an error."""
        return {
            s.api
            for s in self.lab.seen()
            if s.response is not None and s.response.errors.get((self.topic, 0)) == 0
        }

    def used(self) -> set[str]:
        """Return the APIs that the client has asked about the topic."""
        return {s.api for s in self.lab.seen() if (self.topic, 0) in s.partitions}

    def follow(self, since: float) -> Found:
        """Return what came of the first refusal of each API that the client uses."""
        used, seen = self.used(), self.lab.seen()
        return {
            api: judged.follow(seen, api, self.topic, since)
            for api in APIS
            if api.name.capitalize() in used
        }

    def judge(
        self, since: float, judge: Callable[[ApiKey, judged.Answered | None], list[Trait]]
    ) -> list[Trait]:
        """Judge what came of the first refusal of each API."""
        found = self.follow(since)
        return [trait for api, answered in found.items() for trait in judge(api, answered)]

    def prepare(self, node: int) -> None:
        """Do what goes before a move of the partition to a node."""
        self.before_move(self.topic, node)
        self.rest()

    def rest(self) -> None:
        """Wait until no Metadata is on its way any more, and the client has settled."""
        end = time.monotonic() + 2 * SLOW_METADATA / 1000
        while time.monotonic() < end and self._asks_metadata():
            time.sleep(LOOK)
        time.sleep(SETTLE)

    def _asks_metadata(self) -> bool:
        asked = self.lab.seen("Metadata")
        answered = {(s.link, s.correlation_id) for s in asked if s.response is not None}
        return any((s.link, s.correlation_id) not in answered for s in asked)

    def recover(self, since: float) -> None:
        """Wait until each API that was refused succeeds again, or the time for that is over."""
        end = time.monotonic() + _RECOVER
        while time.monotonic() < end:
            found = self.follow(since)
            if found and all(f is not None and f.recovered is not None for f in found.values()):
                return
            time.sleep(LOOK)
