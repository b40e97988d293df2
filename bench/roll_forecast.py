"""What the model says of the roll that :mod:`bench.roll` does."""

from typing import Final, NamedTuple

import numpy as np

from bench.roll import BROKERS, PARTITIONS, RATE, STALL_MS, TOPICS
from leader_hints_report.simulation.arms import Mode, changed_fleet
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.batch import Stalls
from leader_hints_report.simulation.fleet import Fleet, make_fleet
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.simulate import simulate

SEEDS = range(1, 21)
#: Parameters that are work of brokers and clients.
_WORK = ("rtt_ms", "busy_ms", "act_ms", "refuse_ms", "publish_ms")
#: Of brokers on the machine of the published roll, by their logs of another one: milliseconds until
#: a broker is leader or follower of a partition (`Finished LeaderAndIsr request`).
_BECOME_MS = 0.5
#: Of both kinds of clients.
CLIENT = "3.9.1"


#: What was tried once the roll was measured, by one parameter each: (name, parameter, value).
TRIES: Final = (
    ("as forecast", "", 0.0),
    ("twice the work for a partition", "become_ms", 1.0),
    ("a broker just started works four times as slowly", "started_factor", 10.0),
    ("brokers differ more", "act_spread", 1.5),
    ("clients and brokers differ more", "busy_spread", 1.5),
    ("a fifth of early followers is refused", "refused_share", 0.2),
    ("Metadata 200 ms late", "late_metadata_ms", 200.0),
    ("Metadata 500 ms late", "late_metadata_ms", 500.0),
)


class Forecast(NamedTuple):
    """Stalls in milliseconds, of producers or until records were consumed: ``p50`` and ``p99``. How
    ``many`` there are in a roll, and their ``sum`` in seconds."""

    p50: float
    p99: float
    many: float
    sum: float


def fleet(acks: str, quiet_ms: float) -> Fleet:
    """Return the real cluster as the model has it.

    ``quiet_ms``: the median latency before the first broker stopped. A machine that is slower than
    the one that the parameters are of is so in all that brokers and clients do.
    """
    slower = max(quiet_ms / Parameters().rtt_ms, 1.0)
    return make_fleet(
        {
            "cluster": {"brokers": BROKERS, "version": "3.6"},
            "topics": [{"name": "t", "partitions": PARTITIONS, "count": TOPICS}],
            "clients": [
                {
                    "name": "p",
                    "role": "producer",
                    "version": CLIENT,
                    "records_per_second": RATE,
                    "acks": acks,
                },
                {"name": "c", "role": "consumer", "version": CLIENT},
            ],
            "event": {"kind": "rolling_restart", "pause_s": 60, "down_s": 10, "return_s": 10},
            "parameters": {
                **{name: _scaled(name, slower) for name in _WORK},
                "become_ms": _BECOME_MS,
            },
        },
        "roll",
    )


def changed(of: Fleet, name: str, value: float) -> Fleet:
    """Return the cluster with a parameter changed; no name: as it is."""
    if not name:
        return of
    return changed_fleet(of, f"{name}={value}")


def _scaled(name: str, slower: float) -> float:
    """Return a parameter of a slower machine, within its range."""
    extra = Parameters.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    most = extra["high"]
    assert isinstance(most, int | float)
    return min(float(getattr(Parameters(), name)) * slower, float(most))


def forecast(of: Fleet, mode: Mode) -> tuple[Forecast, Forecast]:
    """Forecast the stalls of producers, and until records are consumed."""
    outcomes = [simulate(of, mode, seed) for seed in SEEDS]
    produce = np.concatenate([one.stalls.lengths for one in outcomes])
    read = [one.read_stalls for one in outcomes]
    consume = np.concatenate(
        [
            part
            for one, seed in zip(read, SEEDS, strict=True)
            for part in (one.lengths[one.first > 0], _first_unread(one, seed))
        ]
    )
    return _of(produce), _of(consume)


def _first_unread(of: Stalls, seed: int) -> Floats:
    """The longest wait of records of each partition that was not read for a while: of the first one
    that came meanwhile, where any did."""
    some = (of.first == 0) & (of.rates > 0)
    waits: Floats = of.lengths[some] - np.random.default_rng(seed).exponential(1 / of.rates[some])
    return np.maximum(waits, 0.0)


def _of(lengths: Floats) -> Forecast:
    stalls = lengths[lengths >= STALL_MS]
    p50, p99 = np.quantile(stalls, [0.5, 0.99])
    many = len(SEEDS)
    return Forecast(float(p50), float(p99), len(stalls) / many, float(stalls.sum()) / 1000 / many)
