"""A recording: events, and each broker's answers, where equal ones in a row are one run.

Times are milliseconds since the recording began. Topic ids are ordinals in the order in which they
were seen: 0 is none. Data of clusters is synthetic, and addresses are not recorded.
"""

import gzip
import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
_SUFFIX = ".json.gz"
#: The broker takes no connection, or has closed it.
GONE = -1
#: An answer without an epoch; a question without one.
NO_EPOCH = -1


class Event(NamedTuple):
    """``kind``: see ``real``. ``node``: whom it leads to or befalls; 0: none."""

    at: float
    kind: str
    node: int


class Answer(NamedTuple):
    """What a broker answered of one partition.

    ``leader`` and ``epoch``: of Metadata, or a hint; ``id``, ``replicas`` and ``listed``: of
    Metadata alone.
    """

    error: int
    leader: int = -1
    epoch: int = NO_EPOCH
    id: int = 0
    replicas: tuple[int, ...] = ()
    listed: tuple[int, ...] = ()


class Run(NamedTuple):
    """Equal answers to equal questions, ``answers`` in a row.

    ``sent``: the epoch in the question. The first was asked and answered at ``first``, the last at
    ``last``.
    """

    node: int
    question: str
    partition: int
    sent: int
    first: tuple[float, float]
    last: tuple[float, float]
    answers: int
    answer: Answer


class Point(NamedTuple):
    """One answer: it was given between two times."""

    asked: float
    answered: float
    run: Run


@dataclass(frozen=True)
class Recording:
    """``release``: of the brokers, and ``later``: of each from its event "upgrade" on.

    ``ids``: topics have ids in Metadata.
    """

    name: str
    release: str
    later: str
    kraft: bool
    ids: bool
    events: Sequence[Event]
    runs: Sequence[Run]

    @cached_property
    def nodes(self) -> list[int]:
        """The brokers."""
        return sorted({run.node for run in self.runs})

    @cached_property
    def _created(self) -> list[float]:
        return [event.at for event in self.events if event.kind == "create"]

    def incarnation(self, at: float) -> int:
        """Return how often the topic had been created again at a time."""
        return bisect_right(self._created, at)

    def release_of(self, node: int, at: float) -> str:
        """Return the release of a broker at a time."""
        upgraded = any(
            (event.kind, event.node) == ("upgrade", node) and event.at <= at
            for event in self.events
        )
        return self.later if upgraded else self.release

    def points(self, node: int) -> Iterator[Point]:
        """Iterate over the first and the last answer of each run of a broker, in order."""
        points = [Point(*run.first, run) for run in self.runs if run.node == node]
        points += [
            Point(*run.last, run) for run in self.runs if run.node == node and run.answers > 1
        ]
        # It was asked one question after the other.
        return iter(sorted(points))

    def lives(self, node: int) -> list[list[Point]]:
        """Return the points of a broker from each of its starts to its end."""
        lives: list[list[Point]] = [[]]
        for point in self.points(node):
            if point.run.answer.error == GONE:
                lives.append([])
            else:
                lives[-1].append(point)
        return [life for life in lives if life]


def names() -> list[str]:
    """Return the names of the clusters that were recorded."""
    return sorted(file.name.removesuffix(_SUFFIX) for file in FOLDER.glob(f"*{_SUFFIX}"))


def save(recording: Recording) -> Path:
    """Write a recording: one event or run in each line."""
    head = {
        "release": recording.release,
        "later": recording.later,
        "kraft": recording.kraft,
        "ids": recording.ids,
        "events": len(recording.events),
    }
    lines = [json.dumps(head), *map(json.dumps, recording.events), *map(json.dumps, recording.runs)]
    file = FOLDER / f"{recording.name}{_SUFFIX}"
    # Without the time, so that the same bytes make the same file.
    file.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    return file


def load(name: str) -> Recording:
    """Read a recording."""
    text = gzip.decompress((FOLDER / f"{name}{_SUFFIX}").read_bytes()).decode()
    head, *lines = map(json.loads, text.splitlines())
    count = head.pop("events")
    events = [Event(*line) for line in lines[:count]]
    return Recording(name, **head, events=events, runs=[*map(_run, lines[count:])])


def _run(line: list[Any]) -> Run:
    node, question, partition, sent, first, last, answers, answer = line
    error, leader, epoch, number, replicas, listed = answer
    shown = Answer(error, leader, epoch, number, tuple(replicas), tuple(listed))
    return Run(node, question, partition, sent, tuple(first), tuple(last), answers, shown)
