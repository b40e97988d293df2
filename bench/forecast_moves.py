"""The stalls that the repository's own benches measured, beside those of the model.

The model's cluster is theirs: three brokers, one partition whose leader moves, a producer with 100
records a second (acks=1), a consumer, and followers that fetch often.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from bench.samples import Samples
from bench.stall import RATE, Sample
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.batch import Course, Stalls, cost
from leader_hints_report.simulation.fleet import Fleet, make_fleet
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.propagation import propagate

MOVES: Final = 400
KINDS: Final = ("produce", "consume")
#: bench.stall.FAST_REPLICATION.
_FAST: Final[dict[str, float]] = {"replica_wait_ms": 10.0, "replica_backoff_ms": 5.0}
#: There the order of the replicas changes so much before the leader.
_EPOCH_BEFORE_MS: Final = 20.0
#: In these benches a reassignment has just written records, so the next one comes earlier.
_KRAFT: Final[dict[str, float]] = {"kraft_wait_low_ms": 0.0, "kraft_wait_high_ms": 340.0}


class Case(NamedTuple):
    """Samples of a bench, by file, comparison and arm; and what the model calls that."""

    file: str
    comparison: str
    arm: str
    mode: Mode
    software: str
    version: str
    broker: str
    kraft: bool = False
    calibrated: bool = False
    idempotent: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.file}: {self.comparison}, {self.arm}"


def _stall(comparison: str, *, calibrated: bool = False) -> list[Case]:
    modes = {
        "hints off": Mode.NO_PROXY,
        "hints on": Mode.HINTS,
        "native 3.7, no proxy": Mode.NATIVE,
    }
    return [
        Case("stall", comparison, arm, mode, "java", "3.9.1", "3.6", calibrated=calibrated)
        for arm, mode in modes.items()
    ]


def _kraft(comparison: str, software: str, version: str, *, calibrated: bool = False) -> list[Case]:
    modes = {
        "hints off": Mode.NO_PROXY,
        "hints on": Mode.HINTS,
        "native 3.7, no proxy": Mode.NATIVE,
    }
    return [
        Case("kraft", comparison, arm, mode, software, version, "3.6", True, calibrated)
        for arm, mode in modes.items()
    ]


def _settle(client: str, software: str, version: str, broker: str) -> list[Case]:
    modes = {"passed on": Mode.NO_PROXY, "settled": Mode.SETTLED}
    return [
        Case(
            "settle",
            f"{client}, {broker}",
            arm,
            mode,
            software,
            version,
            broker,
            idempotent=client.endswith("-idempotent"),
        )
        for arm, mode in modes.items()
    ]


CASES: Final = (
    *_stall("zookeeper", calibrated=True),
    *_stall("beside"),
    *_settle("java-3.6-idempotent", "java", "3.6.2", "3.6.2"),
    *_settle("java-3.6", "java", "3.6.2", "2.4.1"),
    *_settle("java-2.8-idempotent", "java", "2.8.2", "3.6.2"),
    *_settle("java-2.8", "java", "2.8.2", "2.4.1"),
    *_settle("aiokafka", "aiokafka", "0.14", "3.6.2"),
    *_settle("aiokafka", "aiokafka", "0.14", "2.4.1"),
    *_settle("kafka-python-2.0", "kafka-python", "2.0.2", "3.6.2"),
    *_settle("kafka-python-2.0", "kafka-python", "2.0.2", "2.4.1"),
    *_settle("confluent-2.3-idempotent", "librdkafka", "2.3.0", "3.6.2"),
    *_settle("confluent-2.3", "librdkafka", "2.3.0", "2.4.1"),
    *_settle("sarama", "sarama", "1.43", "3.6.2"),
    *_settle("sarama", "sarama", "1.43", "2.4.1"),
    *(
        Case("legacy", broker, f"{arm}, {broker}", mode, "java", "3.9.1", broker)
        for broker in ("2.8.2", "2.4.1")
        for arm, mode in (("hints off", Mode.NO_PROXY), ("hints on", Mode.HINTS))
    ),
    *_kraft("java, 3.6.2", "java", "3.9.1", calibrated=True),
    *_kraft("java, 3.4.1", "java", "3.9.1"),
    *_kraft("confluent, 3.6.2", "librdkafka", "2.16.1"),
    *_kraft("franz-go, 3.6.2", "franz-go", "1.22.2"),
)


_NOTHING: Final[dict[str, float]] = {}
#: Moves of each case in the tries below.
TRIED_MOVES: Final = 100
#: What was tried to bring more distributions near: (name, parameters).
TRIES: Final[tuple[tuple[str, dict[str, float]], ...]] = (
    ("as it is", {}),
    ("Metadata sooner", {"publish_ms": 3}),
    ("Metadata later", {"publish_ms": 15}),
    ("less spread of clients and brokers", {"busy_spread": 0.5}),
    ("refusals that take longer", {"refuse_ms": 5}),
    ("brokers of 2.4 always keep polls", {"long_poll_share": 1}),
    ("KRaft's records up to 500 ms later", {"kraft_wait_high_ms": 500}),
)


class Compared(NamedTuple):
    """Medians in milliseconds and the Kolmogorov-Smirnov ``distance`` of one kind of stall."""

    case: Case
    kind: str
    model: float
    measured: float
    distance: float


def compare(
    cases: Sequence[Case] = CASES,
    parameters: Mapping[str, float] = _NOTHING,
    moves: int = MOVES,
) -> list[Compared]:
    """Compare the model's stalls with those that were measured, with some parameters changed."""
    compared = []
    for case in cases:
        measured = _measured(case.file, case.comparison).get(case.arm)
        if measured is None:
            continue
        for kind, model in stalls(case, parameters, moves).items():
            real = np.array(getattr(measured, kind))
            middle, of_real = float(np.median(model)), float(np.median(real))
            compared.append(Compared(case, kind, middle, of_real, distance(model, real)))
    return compared


@cache
def _measured(file: str, comparison: str) -> Mapping[str, Sample]:
    """What a bench measured: read once, since each try is compared with it."""
    return Samples.read(file).all(Sample, comparison)


def distance(one: Floats, other: Floats) -> float:
    """Return the largest difference of two samples' distribution functions."""
    places = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(of), places, side="right") / len(of) for of in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def stalls(
    case: Case, parameters: Mapping[str, float] = _NOTHING, moves: int = MOVES
) -> Mapping[str, Floats]:
    """Simulate moves of one leader, and return their stalls by kind."""
    fleet = _fleet(case, parameters)
    where = layout(fleet)
    lengths: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(moves):
        random = np.random.default_rng([number, 1])
        # With KRaft each round has other two brokers.
        new = 1 + int(random.integers(2)) if case.kraft else 1
        before = 0.0 if case.kraft else _EPOCH_BEFORE_MS
        batch = Batch(0.0, np.array([0]), np.array([0]), np.array([new]), epoch_before=before)
        drawn = np.random.default_rng([number, 2])
        spread = propagate(fleet.cluster, where, batch, fleet.parameters, drawn)
        course = Course(fleet.cluster, where, batch, spread, case.mode, fleet.parameters)
        of, _ = cost(course, random)
        lengths["produce"].append(float(of.produce.lengths.max()))
        lengths["consume"].append(_longest_unread(of.consume, float(random.random())))
    return {kind: np.array(values) for kind, values in lengths.items()}


def _longest_unread(of: Stalls, drawn: float) -> float:
    """The longest wait of any record: of one that was refused, or of the first one that came while
    nothing was read; records come every 10 ms."""
    refused = of.lengths[of.first > 0].max()
    unread = of.lengths[of.first == 0].max() - drawn * 1000 / RATE
    return float(max(refused, unread))


def _fleet(case: Case, parameters: Mapping[str, float]) -> Fleet:
    client = {"software": case.software, "version": case.version}
    return make_fleet(
        {
            "cluster": {
                "brokers": 3,
                "version": case.broker,
                **({"mode": "kraft", "controllers": "brokers"} if case.kraft else {}),
            },
            "topics": [{"name": "t", "partitions": 1}],
            "clients": [
                {
                    "name": "p",
                    "role": "producer",
                    "records_per_second": RATE,
                    "acks": "all" if case.idempotent else "1",
                    "idempotent": case.idempotent,
                    **client,
                },
                {"name": "c", "role": "consumer", **client},
            ],
            "event": {"kind": "reassignment"},
            "parameters": _FAST | (_KRAFT if case.kraft else _NOTHING) | dict(parameters),
        },
        case.name,
    )
