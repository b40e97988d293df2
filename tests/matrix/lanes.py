"""Producers of every kind, each with a topic and a consumer of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_compressed, check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.waiting import until
from tests.matrix.features import Feature
from tests.matrix.roster import Client
from tests.real.sandwich import Sandwich

FETCH = 1
RATE = 15
BETWEEN_MOVES = 5
_CODEC = "compression.type"


@dataclass(frozen=True)
class LaneKind:
    """What a lane's producer and consumer show, and what they are set to for that."""

    produces: Feature
    consumes: Feature = Feature.ASSIGN
    producer: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def _compressed(feature: Feature, codec: str) -> LaneKind:
    return LaneKind(feature, settings={_CODEC: codec})


LANES = (
    LaneKind(Feature.ACKS_0, producer={"acks": "0"}),
    LaneKind(Feature.ACKS_1, Feature.CLOSEST_REPLICA, {"acks": "1"}),
    LaneKind(Feature.ACKS_ALL, Feature.GROUP),
    LaneKind(Feature.IDEMPOTENT, producer={"idempotent": True}),
    LaneKind(Feature.TRANSACTIONAL, Feature.READ_COMMITTED, {"transaction": 5}),
    _compressed(Feature.GZIP, "gzip"),
    _compressed(Feature.SNAPPY, "snappy"),
    _compressed(Feature.LZ4, "lz4"),
    _compressed(Feature.ZSTD, "zstd"),
)


class Lane:
    """A lane at work. What goes wrong is noted with its feature, and ends this lane alone."""

    def __init__(self, kind: LaneKind, topic: str, client: Client) -> None:
        """``topic`` is led by broker 1."""
        self.kind = kind
        self._client = client
        self.topic = topic
        self.results: dict[Feature, str] = {}
        self.records = 0
        self.ended = False
        self._goal = 0
        self.consumes = Feature.ASSIGN if kind.consumes in client.lacks else kind.consumes
        self._producer: ProducerRun | None = None
        self._consumer: ConsumerRun | None = None

    @property
    def partition(self) -> TopicPartition:
        """What it writes to."""
        return TopicPartition(self.topic, 0)

    @property
    def names(self) -> list[str]:
        """The client ids that it uses."""
        return [run.name for run in (self._producer, self._consumer) if run is not None]

    def begin(self, process: ClientProcess, bootstrap: str) -> None:
        """Start the consumer, which is ready first, and the producer."""
        self._attempt(self.consumes, lambda: self._begin_to_consume(process, bootstrap))
        self._attempt(self.kind.produces, lambda: self._begin_to_produce(process, bootstrap))

    def wait_started(self, sandwich: Sandwich) -> None:
        """Wait until the consumer reads what the producer writes."""
        producer = self._producer
        if producer is not None:
            self._attempt(self.kind.produces, producer.wait_started)
        self._attempt(self.consumes, lambda: self._see_flow(sandwich))

    def want_flow(self) -> None:
        """Set what ``flow`` waits for: some more than now."""
        if self._producer is not None:
            self._goal = len(self._producer.acked) + BETWEEN_MOVES

    def flow(self) -> None:
        """Wait until the producer has had acknowledged what was wanted."""
        producer = self._producer
        if producer is not None:
            self._attempt(self.kind.produces, lambda: producer.wait_acked_in_all(self._goal))

    def ask_to_stop(self) -> None:
        """Let the producer finish."""
        if self._producer is not None:
            self._attempt(self.kind.produces, self._producer.ask_to_stop)

    def wait_stopped(self) -> None:
        """Wait until the producer has finished."""
        if self._producer is not None:
            self._attempt(self.kind.produces, self._producer.wait_done)

    def check(self, admin: ClusterAdmin) -> None:
        """Hold what the clients reported against what the brokers have."""
        producer, consumer = self._producer, self._consumer
        if producer is not None:
            self._attempt(self.kind.produces, lambda: self._check_producer(admin, producer))
        if consumer is not None:
            returns = self._client.returns
            self._attempt(self.consumes, lambda: check_consumed(admin, consumer, returns=returns))
            self._attempt(self.consumes, consumer.ask_to_stop)

    def wait_ended(self) -> None:
        """Wait until the consumer has closed too."""
        if self._consumer is not None:
            self._attempt(self.consumes, self._consumer.wait_done)
        self.ended = True

    def _begin_to_consume(self, process: ClientProcess, bootstrap: str) -> None:
        # Broker 3 is a follower until leaders move.
        closest = self.consumes is Feature.CLOSEST_REPLICA
        spec = ConsumerSpec(
            bootstrap,
            self.topic,
            group=f"group-{self.topic}" if self.consumes is Feature.GROUP else None,
            committed_only=self.consumes is Feature.READ_COMMITTED,
            settings={"client.rack": "rack-3"} if closest else {},
        )
        self._consumer = process.begin_to_consume(spec)

    def _begin_to_produce(self, process: ClientProcess, bootstrap: str) -> None:
        spec = ProducerSpec(
            bootstrap,
            self.topic,
            rate=RATE,
            settings={**self._client.producer_settings, **self.kind.settings},
            **self.kind.producer,  # type: ignore[arg-type]
        )
        self._producer = process.begin_to_produce(spec)

    def _see_flow(self, sandwich: Sandwich) -> None:
        assert self._consumer is not None
        self._consumer.wait_count(1)
        if self.consumes is Feature.CLOSEST_REPLICA:
            name = self._consumer.name
            until(
                lambda: sandwich.requests(
                    3, lambda request: request.api_key == FETCH and request.client_id == name
                ),
                f"{name} fetches from the follower in its rack",
            )

    def _check_producer(self, admin: ClusterAdmin, producer: ProducerRun) -> None:
        self.records = len(producer.acked)
        check_produced(admin, producer)
        codec = producer.spec.settings.get(_CODEC)
        if codec is not None:
            check_compressed(admin, producer, codec)

    def _attempt(self, feature: Feature, work: Callable[[], object]) -> None:
        """Do a step unless one before it failed; both features wait for each other."""
        if self.results:
            return
        try:
            work()
        except AssertionError as failure:
            self.results[feature] = str(failure)


def lanes_for(client: Client, number: int) -> list[Lane]:
    """The lanes of a client, with topics of names that no cell before had."""
    return [
        Lane(kind, f"lane-{client.name}-{number}-{kind.produces.name.lower()}", client)
        for kind in LANES
        if kind.produces not in client.lacks
    ]


def results_of(lanes: Sequence[Lane]) -> dict[Feature, str]:
    """What each feature came to: an empty text, or what went wrong first."""
    results: dict[Feature, str] = {}
    for lane in lanes:
        unclear = "" if lane.ended else "not reached"
        for failure in lane.results.values():
            unclear = f"not known: {failure}"
        for feature in (lane.kind.produces, lane.consumes):
            results[feature] = results.get(feature) or lane.results.get(feature) or unclear
    return results
