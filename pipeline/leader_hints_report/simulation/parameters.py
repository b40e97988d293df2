"""The model's parameters: value, range, unit, meaning and source, in one table.

A value outside its range is refused. docs/simulation.md shows the table.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from leader_hints_report.errors import PipelineError

_KAFKA_1_1: Final = (
    "J. Rao, Apache Kafka supports 200K partitions per cluster (2018): 3 s for 10,000 leaders"
)
_RELOAD: Final = (
    "the same: 14 s until a new controller had read the state of 100,000 partitions (1.1)"
)
_HERE: Final = "calibrated here on bench/samples, see the validation"
#: Pairs of which the first is not to be more than the second.
_RISING: Final = (
    ("base_p50_ms", "base_p99_ms"),
    ("base_e2e_p50_ms", "base_e2e_p99_ms"),
    ("kraft_wait_low_ms", "kraft_wait_high_ms"),
)


def _of(default: float, low: float, high: float, unit: str, meaning: str, source: str) -> Any:
    """Return a field of the table."""
    extra: dict[str, JsonValue] = {"unit": unit, "source": source, "low": low, "high": high}
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=extra)


class Parameters(BaseModel):
    """All parameters. Times are milliseconds.

    Large because a fleet has that many timers, and one table is to have them all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    rtt_ms: float = _of(
        3.0, 0.05, 300, "ms", "A request and its answer, client to broker and back.", _HERE
    )
    busy_ms: float = _of(
        6.5,
        0,
        500,
        "ms",
        "Median of what client and broker add to an episode: threads, queues.",
        _HERE,
    )
    busy_spread: float = _of(0.95, 0, 2, "sigma", "Spread of that.", _HERE)
    elect_ms: float = _of(
        0.3,
        0.01,
        40,
        "ms a partition",
        "ZooKeeper: until the controller has written a leader. None is announced before all of "
        "its batch are written.",
        f"{_KAFKA_1_1}; 39 ms before 1.1",
    )
    act_ms: float = _of(
        10.7, 0.5, 200, "ms", "ZooKeeper: median until a replica acts on LeaderAndIsr.", _HERE
    )
    act_spread: float = _of(
        0.9, 0, 2, "sigma", "Spread of that: of the logarithm, from broker to broker.", _HERE
    )
    become_ms: float = _of(
        0.05,
        0,
        5,
        "ms a partition",
        "A broker's work to become leader or follower of one partition.",
        "assumed. Brokers log it: Finished LeaderAndIsr request in ... for ... partitions; 0.3 to "
        "0.7 on the two cores of the real roll",
    )
    started_factor: float = _of(
        2.5,
        1,
        20,
        "times",
        "How much longer that takes a broker that was just started.",
        "the same: 1.1 to 2.2 ms there; its JVM still compiles",
    )
    refuse_ms: float = _of(
        1.0,
        0,
        500,
        "ms",
        "Median for which a former leader keeps requests waiting before it refuses them: it "
        "becomes a follower meanwhile, with its locks held.",
        f"captures here: 12 to 22 ms from the refusal to the leader's answer; {_HERE}",
    )
    refuse_spread: float = _of(0.7, 0, 2, "sigma", "Spread of that.", _HERE)
    publish_ms: float = _of(
        8.0,
        0.5,
        2000,
        "ms",
        "ZooKeeper: median from that until the broker's Metadata shows it.",
        f"2 to 30 ms, up to 80 on a loaded machine, were seen here on 3.6.2; {_HERE}",
    )
    publish_spread: float = _of(0.55, 0, 2, "sigma", "Spread of that.", _HERE)
    update_bytes: float = _of(
        200,
        50,
        1000,
        "bytes a partition",
        "UpdateMetadata: what one partition takes in it. Each broker gets it.",
        "by the message's schema with 3 replicas some 60 to 200",
    )
    update_mb_per_s: float = _of(
        100,
        1,
        10000,
        "MB/s",
        "What the controller sends to all brokers together.",
        "assumed: most of a link of 1 Gbit/s",
    )
    late_metadata_ms: float = _of(
        0.0,
        0,
        60000,
        "ms",
        "Mean of what comes on top until a broker's Metadata shows a move (exponential).",
        "a journal has it; 0 on an idle cluster",
    )
    kraft_elect_ms: float = _of(
        0.03,
        0.001,
        5,
        "ms a partition",
        "KRaft: until the records of a batch are committed.",
        "assumed: a tenth of ZooKeeper's, as controlled shutdown in KIP-500's talks",
    )
    kraft_wait_low_ms: float = _of(
        0.0,
        0,
        500,
        "ms",
        "KRaft: least time until brokers hear that a record is committed: with the next record.",
        "metadata.max.idle.interval.ms = 500; 50 to 500 ms seen here",
    )
    kraft_wait_high_ms: float = _of(
        500.0,
        0,
        2000,
        "ms",
        "KRaft: the most of that. Even between both.",
        "metadata.max.idle.interval.ms = 500",
    )
    kraft_apply_ms: float = _of(
        3.0, 0.1, 500, "ms", "KRaft: median until a broker has applied what it heard.", _HERE
    )
    replica_wait_ms: float = _of(
        500,
        0,
        5000,
        "ms",
        "How long a follower's fetch may wait for records.",
        "replica.fetch.wait.max.ms, Kafka's default",
    )
    replica_backoff_ms: float = _of(
        1000,
        0,
        10000,
        "ms",
        "A follower's pause after a leader refused it.",
        "replica.fetch.backoff.ms, Kafka's default",
    )
    refused_share: float = _of(
        0.0,
        0,
        1,
        "share",
        "Of followers that know of a move before the new leader does: those that ask it too early.",
        "none of 300 moves of `make bench WHAT=replication` had such a pause",
    )
    session_ms: float = _of(
        18000,
        500,
        120000,
        "ms",
        "Until the controller takes a lost broker for lost.",
        "zookeeper.session.timeout.ms = 18000; KRaft: broker.session.timeout.ms = 9000",
    )
    reload_ms: float = _of(
        0.14,
        0,
        5,
        "ms a partition",
        "ZooKeeper: until a new controller has read the state.",
        _RELOAD,
    )
    metadata_age_ms: float = _of(
        300_000,
        1000,
        3_600_000,
        "ms",
        "Until a client asks for Metadata without an error. It meets no move that is older.",
        "metadata.max.age.ms = 300000; librdkafka's topic.metadata.refresh.interval.ms is the same",
    )
    long_poll_ms: float = _of(
        500,
        0,
        60000,
        "ms",
        "How long brokers up to 2.4 keep a consumer's waiting Fetch after they stopped leading.",
        "fetch.max.wait.ms, Kafka's default; seen here on 2.4.1 alone",
    )
    long_poll_share: float = _of(
        0.45, 0, 1, "share", "Of moves in which they do.", "bench/samples: settle, 2.4.1"
    )
    ask_ms: float = _of(
        10,
        1,
        1000,
        "ms",
        "The proxy asks brokers again in this time, while an error is held.",
        "subscription.refresh_interval_ms",
    )
    proxy_ms: float = _of(
        0.3,
        0,
        20,
        "ms",
        "What the proxy adds to an error; other answers have the same base in all modes.",
        "docs/benchmarks.md, CPU and latency",
    )
    deadline_ms: float = _of(100, 0, 10000, "ms", "Longest hold.", "hold.deadline_ms")
    link_hold_ms: float = _of(
        100,
        0,
        1000,
        "ms",
        "Longest that a link is held in a second: no hold is longer.",
        "hold.link_ms_per_second",
    )
    kraft_hold_ms: float = _of(
        500,
        0,
        10000,
        "ms",
        "Longest hold with KRaft, in place of both if these are less, but not 0.",
        "hold.kraft_ms",
    )
    stuck_share: float = _of(
        0.08,
        0,
        1,
        "share",
        "Java producers that have a hint but no node that is ready, since Metadata is due.",
        "docs/benchmarks.md: about one move in ten costs 100 to 200 ms, native brokers too",
    )
    stuck_fetch_share: float = _of(
        0.15,
        0,
        1,
        "share",
        "The same of Java consumers.",
        "bench/samples: of native brokers, 3.7, every fourth consumer took 175 ms or more",
    )
    stuck_ms: float = _of(100, 0, 1000, "ms", "How long these wait, to twice this.", "the same")
    base_p50_ms: float = _of(
        3,
        0.05,
        1000,
        "ms",
        "Median of a record's latency while no leader moves.",
        "measure: the client's record-queue and request latency",
    )
    base_p99_ms: float = _of(12, 0.05, 60000, "ms", "p99 of that.", "the same")
    base_e2e_p50_ms: float = _of(5, 0.05, 1000, "ms", "Median until it is consumed.", "the same")
    base_e2e_p99_ms: float = _of(20, 0.05, 60000, "ms", "p99 of that.", "the same")
    base_tail: float = _of(
        3.3,
        1.01,
        20,
        "index",
        "Beyond p99 the base falls as a power: this one.",
        "KIP-951's micro-benchmark: from p95 to p99, 8 to 13 ms",
    )

    @model_validator(mode="after")
    def _rises(self) -> "Parameters":
        for low, high in _RISING:
            least, most = getattr(self, low), getattr(self, high)
            if least > most:
                raise ValueError(f"{low} {least:g} is more than {high} {most:g}")
        return self


def parameters(values: Mapping[str, float], where: str) -> Parameters:
    """Return the parameters with some values changed.

    :raises PipelineError: a name or a value is not one; ``where`` it stands.
    """
    try:
        return Parameters.model_validate(dict(values))
    except ValidationError as error:
        raise PipelineError(f"{where}: {first_mistake(error)}") from None


def first_mistake(error: ValidationError) -> str:
    """Say in a line what a model refused first, and where."""
    mistake = error.errors()[0]
    place = ".".join(str(part) for part in mistake["loc"]) or "the file"
    if mistake["type"] == "extra_forbidden":
        return f"{place}: there is no such setting; docs/simulation.md has all"
    if mistake["type"] == "string_type" and isinstance(mistake["input"], int | float):
        return f"{place}: {mistake['input']} is a number in YAML; put it in quotes"
    words = mistake["msg"].removeprefix("Value error, ")
    if words != mistake["msg"]:
        return f"{place}: {words}" if mistake["loc"] else words
    return f"{place}: {words[:1].lower()}{words[1:]}"


def changed(table: Parameters, name: str, value: float) -> Parameters:
    """Return a table with one value changed.

    :raises PipelineError: there is no such parameter, or it cannot be that.
    """
    return parameters({**table.model_dump(), name: value}, f"{name}={value:g}")
