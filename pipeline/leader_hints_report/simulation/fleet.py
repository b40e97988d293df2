"""The fleet and the event that are simulated, as a YAML file describes them."""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.clients import numbers_of, rules_of
from leader_hints_report.simulation.parameters import Parameters, first_mistake, parameters

#: What one process can hold: a mistyped number is refused, and does not fill the memory.
_MOST_PARTITIONS = 1_000_000
_MOST_PAIRS = 20_000_000


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: else the former of both would not count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set[str]()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                words = f"{key.value!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, words, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cluster(_Part):
    """The brokers. ``controllers``: on the brokers' nodes (KRaft), or apart from them."""

    brokers: int = Field(ge=2, le=10_000)
    racks: int = Field(3, ge=1, le=1000)
    version: str = "3.6"
    mode: Literal["zookeeper", "kraft"] = "zookeeper"
    controllers: Literal["brokers", "apart"] = "apart"

    @field_validator("version")
    @classmethod
    def _is_a_version(cls, version: str) -> str:
        try:
            numbers_of(version)
        except PipelineError as error:
            raise ValueError(str(error)) from None
        return version

    @model_validator(mode="after")
    def _fits(self) -> "Cluster":
        kraft, numbers = self.mode == "kraft", numbers_of(self.version)
        if kraft and numbers < (2, 8):
            raise ValueError(f"brokers of {self.version} have no KRaft")
        if not kraft and numbers >= (4,):
            raise ValueError(f"brokers of {self.version} have no ZooKeeper; set mode to kraft")
        if not kraft and self.controllers != "apart":
            raise ValueError("controllers are those of KRaft; leave them out")
        return self


class Topics(_Part):
    """So many topics alike. ``count`` of them are called NAME-0, NAME-1 and so on."""

    name: str = Field(min_length=1)
    partitions: int = Field(ge=1, le=_MOST_PARTITIONS)
    replication: int = Field(3, ge=1, le=20)
    count: int = Field(1, ge=1, le=_MOST_PARTITIONS)


def _as_text(value: object) -> object:
    """YAML has 1 without quotes as a number."""
    return str(value) if type(value) is int else value


class Clients(_Part):
    """Clients alike. ``count`` of them in each topic of ``topics``, names as above; none: of all.

    ``records_per_second``: of the producers of one topic together. ``idempotent``: whether its
    producers are; ``None``: as the software has it.
    """

    name: str = Field(min_length=1)
    role: Literal["producer", "consumer"]
    software: str = "apache-kafka-java"
    version: str = "3.6.2"
    topics: tuple[str, ...] = ()
    count: int = Field(1, ge=1, le=1_000_000)
    records_per_second: float = Field(0, ge=0, le=1e9)
    acks: Annotated[Literal["0", "1", "all"], BeforeValidator(_as_text)] = "all"
    idempotent: bool | None = None
    linger_ms: float = Field(0, ge=0, le=60_000)
    retry_backoff_ms: float | None = Field(None, ge=0, le=60_000)

    @model_validator(mode="after")
    def _fits(self) -> "Clients":
        if (self.role == "producer") != (self.records_per_second > 0):
            which = "needs" if self.role == "producer" else "has no"
            raise ValueError(f"{self.name}: a {self.role} {which} records_per_second")
        for name, value in (("acks", "all"), ("idempotent", None), ("linger_ms", 0)):
            if self.role == "consumer" and getattr(self, name) != value:
                raise ValueError(f"{self.name}: a consumer has no {name}")
        if self.idempotent and self.acks != "all":
            raise ValueError(f"{self.name}: idempotent producers need acks all")
        try:
            rules_of(self.software, self.version)
        except PipelineError as error:
            raise ValueError(f"{self.name}: {error}") from None
        return self

    @property
    def may_be_settled(self) -> bool:
        """Whether a proxy with ``hold.settle`` holds their errors: Produce errors only of producers
        of which the broker keeps the order."""
        if self.role == "consumer":
            return True
        by_itself = self.acks == "all" and rules_of(self.software, self.version).idempotent
        return by_itself if self.idempotent is None else self.idempotent


class RollingRestart(_Part):
    """Brokers are restarted one after the other. Leaders return ``return_s`` after a start."""

    kind: Literal["rolling_restart"] = "rolling_restart"
    pause_s: float = Field(600, gt=0, le=86_400)
    down_s: float = Field(30, gt=0, le=86_400)
    return_s: float | None = Field(60, ge=0, le=86_400)
    batch: int | None = Field(None, ge=1)
    batch_pause_s: float = Field(1, ge=0, le=3600)

    @model_validator(mode="after")
    def _in_order(self) -> "RollingRestart":
        needed = self.down_s + (self.return_s or 0)
        if needed > self.pause_s:
            raise ValueError(
                f"pause_s {self.pause_s:g} is less than down_s and return_s together, {needed:g}: "
                "the next broker would stop before the leaders are back"
            )
        return self


class Reassignment(_Part):
    """So many partitions get another leader, ``batch`` at once. The order of their replicas changes
    first, ``epoch_before_ms`` earlier: epochs rise then, and consumers ask for Metadata."""

    kind: Literal["reassignment"]
    partitions: int | None = Field(None, ge=1)
    epoch_before_ms: float = Field(20, ge=0, le=60_000)
    batch: int = Field(1, ge=1)
    batch_pause_s: float = Field(1, ge=0, le=3600)


class PreferredElection(_Part):
    """All leaders are at a wrong broker, and return to the preferred one, ``batch`` at once."""

    kind: Literal["preferred_election"]
    batch: int | None = Field(None, ge=1)
    batch_pause_s: float = Field(1, ge=0, le=3600)


class Loss(_Part):
    """A broker, a rack, or the broker that is the active controller is lost at once."""

    kind: Literal["broker_loss", "rack_loss", "controller_failover"]


Event = Annotated[
    RollingRestart | Reassignment | PreferredElection | Loss, Field(discriminator="kind")
]


class Fleet(_Part):
    """All that is simulated. ``duration_s``: of the time that figures are about, at least."""

    cluster: Cluster
    topics: tuple[Topics, ...] = Field(min_length=1)
    clients: tuple[Clients, ...] = Field(min_length=1)
    event: Event = Field(default_factory=lambda: RollingRestart.model_validate({}))
    parameters: Parameters = Parameters()
    duration_s: float = Field(0, ge=0, le=604_800)

    @model_validator(mode="after")
    def _is_possible(self) -> "Fleet":
        names = set[str]()
        for topic in self.topics:
            if topic.name in names:
                raise ValueError(f"topic {topic.name}: it stands twice")
            names.add(topic.name)
        for clients in self.clients:
            for name in clients.topics:
                if name not in names:
                    raise ValueError(f"clients {clients.name}: there is no topic {name!r}")
        for topic in self.topics:
            if topic.replication > self.cluster.brokers:
                raise ValueError(
                    f"topic {topic.name}: replication {topic.replication} is more than the "
                    f"{self.cluster.brokers} brokers"
                )
            if topic.replication < 2:
                raise ValueError(
                    f"topic {topic.name}: replication 1 has no other leader; leave such topics out"
                )
        partitions = sum(topic.partitions * topic.count for topic in self.topics)
        if partitions > _MOST_PARTITIONS:
            raise ValueError(f"{partitions} partitions are more than {_MOST_PARTITIONS}")
        # A group of consumers has one for each partition.
        pairs = sum(
            topic.partitions * topic.count * (clients.count if clients.role == "producer" else 1)
            for clients in self.clients
            for topic in self.topics
            if not clients.topics or topic.name in clients.topics
        )
        if pairs > _MOST_PAIRS:
            raise ValueError(
                f"{pairs} pairs of client and partition are more than {_MOST_PAIRS}; lower count, "
                "and raise records_per_second of each"
            )
        return self


def read_fleet(file: Path) -> Fleet:
    """Read a fleet.

    :raises PipelineError: the file cannot be read, or something in it is wrong.
    """
    return make_fleet(read_document(file), str(file))


def read_document(file: Path) -> object:
    """Read a YAML file.

    :raises PipelineError: it cannot be read, or is not YAML.
    """
    try:
        return yaml.load(file.read_text("utf-8"), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    except RecursionError:
        raise PipelineError(f"{file} is not YAML: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        # PyYAML leaves it to Python to refuse a date or a number.
        reason = " ".join(str(error).split())
        raise PipelineError(f"{file} is not YAML: {reason}") from None


def make_fleet(document: object, where: str) -> Fleet:
    """Return the fleet that a document describes.

    :raises PipelineError: something in it is wrong; ``where`` it stands.
    """
    if not isinstance(document, dict):
        raise PipelineError(
            f"{where}: a fleet has cluster, topics and clients; docs/simulation.md has examples"
        )
    values = document.get("parameters") or {}
    if isinstance(values, dict):
        parameters(values, f"{where}: parameters")
    try:
        return Fleet.model_validate(document)
    except ValidationError as error:
        raise PipelineError(f"{where}: {first_mistake(error)}") from None
