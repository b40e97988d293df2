"""Asks one broker question after question, without I/O, and keeps what it answers."""

from tests.world import wire
from tests.world.model.broker import Error
from tests.world.model.releases import METADATA
from tests.world.recorded.questions import (
    CONNECTION,
    METADATA_NAME,
    PARTITIONS,
    QUESTIONS,
    Epoch,
    Question,
    read_error,
    request,
)
from tests.world.recorded.recording import GONE, NO_EPOCH, Answer, Run


class Knowledge:
    """What all askers of a cluster have seen. ``epochs``: the last of each broker's Metadata."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.epochs: dict[tuple[int, int], int] = {}
        self._ids: dict[bytes, int] = {}

    def newest(self, partition: int) -> int:
        """Return the newest epoch of a partition; -1: none."""
        known = [*self.epochs.items()]
        return max((epoch for (_, of), epoch in known if of == partition), default=NO_EPOCH)

    def ordinal(self, topic_id: bytes) -> int:
        """Return the number of a topic id."""
        return self._ids.setdefault(topic_id, len(self._ids) + 1) if any(topic_id) else 0


class Asker:
    """Asks one broker. ``version``: of Metadata. Times are milliseconds."""

    def __init__(self, node: int, version: int, knowledge: Knowledge) -> None:
        self.runs: list[Run] = []
        self._node = node
        self._version = version
        self._knowledge = knowledge
        self._latest: dict[tuple[str, int], int] = {}
        self._correlation = 0
        self._question: Question = QUESTIONS[-1]
        self._sent = NO_EPOCH

    def ask(self) -> bytes:
        """Return the next request."""
        self._question = QUESTIONS[self._correlation % len(QUESTIONS)]
        self._correlation += 1
        self._sent = self._epoch(self._question)
        topic = self._knowledge.topic
        return request(self._question, self._version, self._correlation, topic, self._sent)

    @property
    def round_is_over(self) -> bool:
        """Whether all questions were asked once more."""
        return self._correlation % len(QUESTIONS) == 0

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
            answer = Answer(read_error(question, payload))
            self._note(times, question.name, question.partition, self._sent, answer)
            return
        endpoints, topics = wire.read_metadata(self._version, payload)
        listed = tuple(sorted(endpoints))
        for partition in PARTITIONS:
            answer = self._shown(topics[0], partition, listed)
            self._knowledge.epochs[self._node, partition] = answer.epoch
            self._note(times, METADATA_NAME, partition, NO_EPOCH, answer)

    def gone(self, at: float) -> None:
        """Note that no connection is possible, or that it ended."""
        self._correlation = 0
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
