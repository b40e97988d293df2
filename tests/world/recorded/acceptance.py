"""Whether the model's brokers could have answered as recorded: a search over what they had learnt.

The controller's log is read from the recording: a decision for each epoch that Metadata showed, and
one for each event after which another set of brokers is there. A broker's state is how much of the
log its replicas and its Metadata know. From one answer to the next it goes on as
:mod:`tests.world.model.learning` says. An answer leaves those states in which the model's broker
gives it. If none is left, no broker of the model could have answered so.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tests.world.model.broker import Broker, Error
from tests.world.model.learning import NOTHING, Known, Made, next_known
from tests.world.model.releases import RELEASES
from tests.world.model.truth import NO_LEADER, Alive, Deleted, Image, Leader, Record, Topic
from tests.world.recorded.questions import METADATA_NAME
from tests.world.recorded.recording import NO_EPOCH, Answer, Event, Point, Recording

_NAME = "recorded"
#: Events after which a broker is there no longer, or again.
_GONE = ("stop", "kill", "freeze")
_BACK = ("start", "upgrade", "thaw")


@dataclass(frozen=True)
class Misfit:
    """An answer that no state allows; ``before``: those that the answer before it had left."""

    point: Point
    before: frozenset[Known]

    def __str__(self) -> str:
        run = self.point.run
        return (
            f"{self.point.asked:.0f} ms, broker {run.node}: {run.question} of partition "
            f"{run.partition} with epoch {run.sent} gave {run.answer}; known: "
            f"{sorted(map(tuple, self.before))}"
        )


class _Shown(NamedTuple):
    """What Metadata has shown first ``at`` a time."""

    at: float
    leader: int
    replicas: tuple[int, ...]
    id: int


class Log:
    """The controller's decisions about one partition, as far as Metadata has shown them.

    ``listed_until_gone``: a broker that goes is listed until Metadata shows otherwise.
    """

    def __init__(
        self, recording: Recording, partition: int, *, listed_until_gone: bool = True
    ) -> None:
        self._recording = recording
        self._partition = partition
        self._listed_until_gone = listed_until_gone

    @cached_property
    def decisions(self) -> list[tuple[float, Record]]:
        """The decisions, in order, and when Metadata first showed what came of them."""
        decisions: list[tuple[float, Record]] = []
        changes = [*self._listed()]
        for at, topic in self._decided():
            while changes and changes[0][0] <= at:
                decisions.append(changes.pop(0))
            decisions.append((at, topic))
        return decisions + changes

    def possible(self, at: float) -> int:
        """Return how many of the decisions may have been made by a time: each is of an event."""
        begun = sum(event.at <= at for event in self._recording.events)
        following = [event.at for event in self._recording.events[begun:]]
        end = following[0] if following else math.inf
        return next(
            (n for n, (shown, _) in enumerate(self.decisions) if shown >= end), len(self.decisions)
        )

    def _listed(self) -> Iterator[tuple[float, Alive]]:
        """Iterate over which brokers are there, and when Metadata first listed just them."""
        nodes = frozenset(self._recording.nodes)
        yield -math.inf, _alive(nodes)
        for event in self._recording.events:
            if event.kind in _GONE + _BACK:
                back = event.kind in _BACK
                nodes = nodes | {event.node} if back else nodes - {event.node}
                at = self._first_listed(event) if self._listed_until_gone else event.at
                yield at, _alive(nodes)

    def _first_listed(self, event: Event) -> float:
        return min(
            run.first[0]
            for run in self._recording.runs
            if run.question == METADATA_NAME
            and run.first[0] >= event.at
            and run.answer.listed
            and (event.node in run.answer.listed) == (event.kind in _BACK)
            # One that was frozen lists itself all the time.
            and (event.kind, event.node) != ("thaw", run.node)
        )

    def _decided(self) -> Iterator[tuple[float, Topic | Deleted]]:
        """Iterate over what was decided about the topic, and when Metadata first showed it."""
        shown = self._shown()
        deleted = [event.at for event in self._recording.events if event.kind == "delete"]
        for incarnation, until in enumerate([*deleted, math.inf]):
            of = {epoch: ways for (number, epoch), ways in shown.items() if number == incarnation}
            yield from self._topics(incarnation, of)
            if of and until < math.inf:
                yield until, Deleted(_NAME)

    def _shown(self) -> dict[tuple[int, int], list[_Shown]]:
        """Return, by incarnation and epoch, what was shown in the order of its coming."""
        shown: dict[tuple[int, int], list[_Shown]] = {}
        ids: dict[int, int] = {}
        for run in sorted(self._recording.runs, key=lambda run: run.first):
            answer = run.answer
            if (
                run.question == METADATA_NAME
                and run.partition == self._partition
                and answer.epoch != NO_EPOCH
            ):
                number = self._recording.incarnation(run.first[0])
                # A broker of a release without ids shows none.
                topic_id = ids[number] = max(ids.get(number, 0), answer.id)
                ways = shown.setdefault((number, answer.epoch), [])
                way = _Shown(run.first[0], answer.leader, answer.replicas, topic_id)
                if way[1:] not in [other[1:] for other in ways]:
                    ways.append(way)
        # A leader of which a broker knows no endpoint is not shown.
        for place, ways in shown.items():
            shown[place] = [way for way in ways if way.leader != NO_LEADER] or ways
        return shown

    def _topics(
        self, incarnation: int, shown: dict[int, list[_Shown]]
    ) -> Iterator[tuple[float, Topic]]:
        for epoch in range(max(shown, default=-1) + 1):
            # One that no Metadata has shown came shortly before the next, by the same leader.
            ways = shown.get(epoch) or shown[min(other for other in shown if other > epoch)][:1]
            for way in ways:
                yield way.at, self._topic(incarnation, epoch, way)

    def _topic(self, incarnation: int, epoch: int, shown: _Shown) -> Topic:
        # Other partitions are of no interest here.
        before = self._partition
        return Topic(
            _NAME,
            incarnation,
            topic_id(shown.id),
            (Leader(NO_LEADER, 0),) * before + (Leader(shown.leader, epoch),),
            ((),) * before + (shown.replicas,),
        )


def topic_id(number: int) -> bytes:
    """Return an id for the ordinal of one."""
    return number.to_bytes(16) if number else b""


class Acceptance:
    """Follows the brokers of a recording, as far as one partition is concerned."""

    def __init__(self, recording: Recording, log: Log, partition: int) -> None:
        self._recording = recording
        self._partition = partition
        self._log = log
        self._records = [record for _, record in log.decisions]
        self._answers: dict[tuple[int, Known, str, str, int], Answer] = {}
        self._images = [Image()]
        for record in self._records:
            image = self._images[-1].copy()
            image.apply(record)
            self._images.append(image)

    def misfits(self) -> Iterator[Misfit]:
        """Iterate over the answers that the model could not have given."""
        for node in self._recording.nodes:
            known = frozenset(self._anything())
            for number, life in enumerate(self._recording.lives(node)):
                if number:
                    known = frozenset(self._restarted(known))
                yield from self._follow(node, life, known)
                # What it knew at its end is found again from its first answers.
                known = frozenset(self._anything())

    def _follow(
        self, node: int, life: Iterable[Point], known: frozenset[Known]
    ) -> Iterator[Misfit]:
        for point in life:
            if point.run.partition != self._partition:
                continue
            later = self._later(node, known, self._log.possible(point.answered))
            fits = frozenset(state for state in later if self._fits(node, state, point))
            if not fits:
                yield Misfit(point, known)
                fits = frozenset(
                    state for state in self._anything() if self._fits(node, state, point)
                ) or frozenset(self._anything())
            known = fits

    # What a broker may learn.

    def _anything(self) -> Iterator[Known]:
        for count in range(len(self._images)):
            yield Known(count, count)

    def _restarted(self, known: Iterable[Known]) -> Iterator[Known]:
        if self._recording.kraft:
            yield from known
        else:
            yield Known(NOTHING, NOTHING)

    def _later(self, node: int, known: Iterable[Known], possible: int) -> set[Known]:
        """Return all states that can follow, of those in which no more is known than possible."""
        reached = set(known)
        waiting = list(reached)
        log = self._records[:possible]
        while waiting:
            for state in next_known(log, waiting.pop(), node, kraft=self._recording.kraft):
                if state not in reached:
                    reached.add(state)
                    waiting.append(state)
        return reached

    # What it answers by that.

    def _fits(self, node: int, known: Known, point: Point) -> bool:
        run = point.run
        release = self._recording.release_of(node, point.asked)
        key = node, known, release, run.question, run.sent
        if key not in self._answers:
            self._answers[key] = self._answer(*key)
        return self._answers[key] == self._of_interest(run.answer)

    def _answer(self, node: int, known: Known, release: str, question: str, epoch: int) -> Answer:
        broker = self._broker(node, known, release)
        if question == METADATA_NAME:
            described = self._described(broker, with_ids=self._recording.ids)
            return self._of_interest(described)
        return self._served(broker, question, epoch)

    def _broker(self, node: int, known: Known, release: str) -> Broker:
        broker = Broker(node, RELEASES[release])
        broker.replicas = self._image(known.replicas)
        if known.made:
            broker.logless = (_NAME,)
            broker.replicas = self._made(known)
        broker.metadata = self._image(known.metadata)
        return broker

    def _made(self, known: Known) -> Image:
        """Return what replicas know when one was made that is not ready yet."""
        image = self._image(max(known.replicas, known.metadata)).copy()
        if known.replicas == known.metadata:
            image.apply(self._records[known.metadata])
        if known.made is Made.WITHOUT_EPOCH:
            image.apply(image.topics[_NAME].led(self._partition, Leader(NO_LEADER, NO_EPOCH)))
        return image

    def _image(self, count: int) -> Image:
        return Image() if count == NOTHING else self._images[count]

    def _served(self, broker: Broker, question: str, epoch: int) -> Answer:
        name, _, version = question.partition(" ")
        error = self._error(broker, name, version, epoch)
        room = (name, version.split()[:1]) in (("produce", ["10"]), ("fetch", ["16"]))
        if room and error.hinted and broker.release.hints:
            return Answer(int(error), *broker.hint(_NAME, self._partition))
        return Answer(int(error))

    def _error(self, broker: Broker, name: str, version: str, epoch: int) -> Error:
        if name == "produce":
            return broker.produce(_NAME, self._partition)
        if name == "offsets":
            return broker.list_offsets(_NAME, self._partition, epoch)
        number, *words = version.split()
        if "of" in words:
            return broker.fetch_by_id(topic_id(int(words[-1])), self._partition, epoch)
        return broker.fetch(_NAME, self._partition, epoch, int(number))

    def _of_interest(self, answer: Answer) -> Answer:
        # The log of a later partition begins with it, and not with the topic.
        return answer._replace(id=0, listed=()) if self._partition else answer

    def _described(self, broker: Broker, *, with_ids: bool) -> Answer:
        (topic,) = broker.describe([_NAME], ())
        listed = tuple(sorted(broker.metadata.alive))
        number = int.from_bytes(topic.id) if with_ids and broker.release.ids else 0
        if self._partition >= len(topic.partitions):
            error = topic.error or Error.UNKNOWN_TOPIC_OR_PARTITION
            return Answer(int(error), id=number, listed=listed)
        shown = topic.partitions[self._partition]
        return Answer(int(shown.error), *shown.leader, number, shown.replicas, listed)


def _alive(nodes: Iterable[int]) -> Alive:
    return Alive({node: node for node in nodes})
