"""Mutated answers to what the proxy asks on its own, and what its view learns of them."""

import contextlib
import random

from leader_hints.apis import api_versions, list_offsets, metadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader
from tests.apis import chance as by_chance
from tests.apis.messages import encode, response_type
from tests.core.brokers import BROKERS
from tests.core.samples import versions_answer
from tests.fuzz.mutate import mutated
from tests.fuzz.seeds import metadata_bodies

#: Partitions that a view may take for a topic beyond those that an answer has, and a little.
_BEYOND = 1100


class Answers:
    """Answers of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        chance = random.Random(seed)
        self._metadata = metadata_bodies(chance)
        offsets = [
            by_chance.entity(response_type(2, list_offsets.VERSION), chance) for _ in range(40)
        ]
        self._offsets = [encode(entity) for entity in offsets]
        self._asked = {
            (topic.name, partition.partition_index)
            for entity in offsets
            for topic in entity.topics
            for partition in topic.partitions
        }
        self._versions = [
            (version, versions_answer(version, 1, BROKERS["3.6"])) for version in range(4)
        ]

    def read(self, number: int) -> int:
        """Read answers that follow from ``number``; return how many there were.

        Whatever is raised but WireError is a defect.
        """
        chance = random.Random(self._seed << 40 | number)
        view = LeaderView("k")
        size = topics = 0
        answers = chance.choices(self._metadata, k=4)
        for version, payload in answers:
            raw = mutated(payload, [payload], chance)
            size += len(raw)
            with contextlib.suppress(WireError):
                reader = Reader(raw, 4)
                reader.skip_tags()
                for topic in metadata.read_response(reader, version).topics:
                    topics += 1
                    view.learn(topic, chance.choice((None, 1)), poll=chance.random() < 0.5)
        assert len(view) <= topics * (_BEYOND + size), f"{len(view)} partitions of {size} bytes"
        offsets = chance.choice(self._offsets)
        with contextlib.suppress(WireError):
            list_offsets.read_errors(Reader(mutated(offsets, [offsets], chance)), self._asked)
        version, frame = chance.choice(self._versions)
        with contextlib.suppress(WireError):
            api_versions.read_ranges(Reader(mutated(frame, [frame], chance), 8), version)
        return len(answers) + 2
