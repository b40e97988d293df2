"""Asks one broker question after question, without I/O, and keeps what it answers."""

from collections.abc import Sequence

from tests.world import wire
from tests.world.model.broker import Error
from tests.world.model.releases import METADATA
from tests.world.recorded.questions import (
    CONNECTION,
    METADATA_NAME,
    PARTITIONS,
    Epoch,
    Question,
    read,
    request,
)
from tests.world.recorded.recording import GONE, NO_EPOCH, Answer, Run


class Knowledge:
    """What all askers of a cluster have seen. ``epochs``: the last of each broker's Metadata.

    ``ids``: of the topic, in the order in which they were seen.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.epochs: dict[tuple[int, int], int] = {}
        self.ids: list[bytes] = []

    def newest(self, partition: int) -> int:
        """Return the newest epoch of a partition; -1: none."""
        known = [*self.epochs.items()]
        return max((epoch for (_, of), epoch in known if of == partition), default=NO_EPOCH)

    def ordinal(self, topic_id: bytes) -> int:
        """Return the number of a topic id."""
        if not any(topic_id):
            return 0
        if topic_id not in self.ids:
            self.ids.append(topic_id)
        return self.ids.index(topic_id) + 1


class Asker:
    """Asks one broker. ``version``: of Metadata. Times are milliseconds."""

    def __init__(
        self, node: int, version: int, questions: Sequence[Question], knowledge: Knowledge
    ) -> None:
        self.version = version
        self.runs: list[Run] = []
        self._node = node
        self._questions = questions
        self._knowledge = knowledge
        self._latest: dict[tuple[str, int], int] = {}
        self._correlation = 0
        self._next = 0
        self._question = questions[0]
        self._name = ""
        self._sent = NO_EPOCH

    def ask(self) -> bytes:
        """Return the next request."""
        ids = self._knowledge.ids
        possible = [question for question in self._questions if question.id <= len(ids)]
        question = self._question = possible[self._next]
        self._next = (self._next + 1) % len(possible)
        self._correlation += 1
        self._sent = self._epoch(question)
        self._name, topic = question.name, self._knowledge.topic
        if question.id:
            number = len(ids) - question.id
            self._name += f" {number + 1}"
            return request(question, self.version, self._correlation, ids[number], self._sent)
        return request(question, self.version, self._correlation, topic, self._sent)

    @property
    def round_is_over(self) -> bool:
        """Whether all questions were asked once more."""
        return self._next == 0

    def _epoch(self, question: Question) -> int:
        if question.epoch is Epoch.NONE:
            return NO_EPOCH
        newest = self._knowledge.newest(question.partition)
        return newest if question.epoch is Epoch.NEWEST else max(newest - 1, NO_EPOCH)

    def take(self, asked: float, answered: float, payload: bytes) -> None:
        """Take the answer to the last request."""
        times = round(asked, 1), round(answered, 1)
        assert int.from_bytes(payload[:4]) == self._correlation, "an answer to another request"
        self._latest.pop((CONNECTION, 0), None)
        question = self._question
        if question.key != METADATA:
            answer = read(question, payload)
            self._note(times, self._name, question.partition, self._sent, answer)
            return
        endpoints, topics = wire.read_metadata(self.version, payload)
        listed = tuple(sorted(endpoints))
        for partition in PARTITIONS:
            answer = self._shown(topics[0], partition, listed)
            self._knowledge.epochs[self._node, partition] = answer.epoch
            self._note(times, METADATA_NAME, partition, NO_EPOCH, answer)

    def gone(self, at: float) -> None:
        """Note that no connection is possible, or that it ended."""
        self._next = 0
        self._latest = {key: run for key, run in self._latest.items() if key[0] == CONNECTION}
        for partition in PARTITIONS:
            self._knowledge.epochs.pop((self._node, partition), None)
        self._note((round(at, 1), round(at, 1)), CONNECTION, 0, NO_EPOCH, Answer(GONE))

    def _shown(self, topic: wire.SeenTopic, partition: int, listed: tuple[int, ...]) -> Answer:
        number = self._knowledge.ordinal(topic.id)
        for seen in topic.partitions:
            if seen.number == partition:
                return Answer(seen.error, seen.leader, seen.epoch, number, seen.replicas, listed)
        error = topic.error or Error.UNKNOWN_TOPIC_OR_PARTITION
        return Answer(int(error), id=number, listed=listed)

    def _note(
        self, times: tuple[float, float], name: str, partition: int, sent: int, answer: Answer
    ) -> None:
        key = name, partition
        latest = self._latest.get(key)
        if latest is not None and (run := self.runs[latest])[3] == sent and run.answer == answer:
            self.runs[latest] = run._replace(last=times, answers=run.answers + 1)
            return
        self._latest[key] = len(self.runs)
        self.runs.append(Run(self._node, name, partition, sent, times, times, 1, answer))
