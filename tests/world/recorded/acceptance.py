"""Whether the model's brokers could have answered as recorded: a search over what they had learnt.

The controller's log is read from the recording: a decision for each epoch that Metadata showed. A
broker's state is how much of the log its replicas and its Metadata know. From one answer to the
next it goes on as :mod:`tests.world.model.learning` says. An answer leaves those states in which
the model's broker gives it. If none is left, no broker of the model could have answered so.

Which brokers are listed is taken from the answer: it is checked by a rule of its own.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.world.model.broker import Broker, Error
from tests.world.model.learning import NOTHING, Known, next_known
from tests.world.model.releases import RELEASES
from tests.world.model.truth import NO_LEADER, Alive, Deleted, Image, Leader, Record, Topic
from tests.world.recorded.questions import METADATA_NAME
from tests.world.recorded.recording import NO_EPOCH, Answer, Point, Recording

_NAME = "recorded"


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


class Log:
    """The controller's decisions about one partition, as far as Metadata has shown them."""

    def __init__(self, recording: Recording, partition: int) -> None:
        self._recording = recording
        self._partition = partition

    @cached_property
    def records(self) -> list[Record]:
        """The decisions, in order."""
        records: list[Record] = []
        shown = self._shown()
        for incarnation in range(self._recording.incarnation(math.inf) + 1):
            if records and isinstance(records[-1], Topic):
                records.append(Deleted(_NAME))
            of = {epoch: ways for (number, epoch), ways in shown.items() if number == incarnation}
            if of:
                records += self._topics(incarnation, of)
        return records

    def _shown(self) -> dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]]:
        """Return, by incarnation and epoch, leaders and replicas in the order of their coming."""
        shown: dict[tuple[int, int], list[tuple[int, tuple[int, ...]]]] = {}
        for run in sorted(self._recording.runs, key=lambda run: run.first):
            answer = run.answer
            if (
                run.question == METADATA_NAME
                and run.partition == self._partition
                and answer.epoch != NO_EPOCH
            ):
                number = self._recording.incarnation(run.first[0])
                ways = shown.setdefault((number, answer.epoch), [])
                if (answer.leader, answer.replicas) not in ways:
                    ways.append((answer.leader, answer.replicas))
        # A leader of which a broker knows no endpoint is not shown.
        for place, ways in shown.items():
            shown[place] = [way for way in ways if way[0] != NO_LEADER] or ways
        return shown

    def _topics(
        self, incarnation: int, shown: dict[int, list[tuple[int, tuple[int, ...]]]]
    ) -> Iterator[Topic]:
        for epoch in range(max(shown) + 1):
            # One that no Metadata has shown came shortly before the next, by the same leader.
            ways = shown.get(epoch) or shown[min(other for other in shown if other > epoch)][:1]
            for leader, replicas in ways:
                yield self._topic(incarnation, Leader(leader, epoch), replicas)

    def _topic(self, incarnation: int, leader: Leader, replicas: tuple[int, ...]) -> Topic:
        # Other partitions are of no interest here.
        before = self._partition
        return Topic(
            _NAME,
            incarnation,
            b"",
            (Leader(NO_LEADER, 0),) * before + (leader,),
            ((),) * before + (replicas,),
        )


class Acceptance:
    """Follows the brokers of a recording, as far as one partition is concerned."""

    def __init__(self, recording: Recording, partition: int) -> None:
        self._recording = recording
        self._partition = partition
        self._records = Log(recording, partition).records
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
            later = self._later(node, known)
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

    def _later(self, node: int, known: Iterable[Known]) -> frozenset[Known]:
        """Return all states that can follow."""
        reached = set(known)
        waiting = list(reached)
        while waiting:
            following = next_known(self._records, waiting.pop(), node, kraft=self._recording.kraft)
            for state in following:
                if state not in reached:
                    reached.add(state)
                    waiting.append(state)
        return frozenset(reached)

    # What it answers by that.

    def _fits(self, node: int, known: Known, point: Point) -> bool:
        run = point.run
        if run.question == METADATA_NAME:
            return self._described(node, known, run.answer) == run.answer._replace(id=0)
        return self._error(node, known, run.question, run.sent) == run.answer.error

    def _broker(self, node: int, known: Known) -> Broker:
        broker = Broker(node, RELEASES[self._recording.release])
        broker.replicas = self._image(known.replicas)
        if known.made:
            broker.replicas = self._made(known)
        broker.metadata = self._image(known.metadata)
        return broker

    def _made(self, known: Known) -> Image:
        """Return what replicas know when one was made that has no epoch yet."""
        number = known.metadata if known.replicas == known.metadata else known.metadata - 1
        record = self._records[number]
        assert isinstance(record, Topic)
        image = self._images[known.replicas].copy()
        image.apply(record.led(self._partition, Leader(NO_LEADER, NO_EPOCH)))
        return image

    def _image(self, count: int) -> Image:
        return Image() if count == NOTHING else self._images[count]

    def _error(self, node: int, known: Known, question: str, epoch: int) -> int:
        broker = self._broker(node, known)
        if question == "produce":
            return broker.produce(_NAME, self._partition)
        if question.startswith("offsets"):
            return broker.list_offsets(_NAME, self._partition, epoch)
        return broker.fetch(_NAME, self._partition, epoch, int(question.split()[1]))

    def _described(self, node: int, known: Known, answer: Answer) -> Answer:
        broker = self._broker(node, known)
        broker.metadata = broker.metadata.copy()
        broker.metadata.apply(Alive(frozenset(answer.listed)))
        (topic,) = broker.describe([_NAME], ())
        if self._partition >= len(topic.partitions):
            return Answer(int(Error.UNKNOWN_TOPIC_OR_PARTITION), listed=answer.listed)
        shown = topic.partitions[self._partition]
        return Answer(
            int(shown.error), *shown.leader, replicas=shown.replicas, listed=answer.listed
        )
