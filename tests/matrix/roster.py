"""The client libraries of the matrix."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from tests.harness import franz_go
from tests.harness.clients import ClientProcess
from tests.harness.environments import Environment
from tests.harness.java import java_clients
from tests.harness.python_client import AIOKAFKA, CONFLUENT, KAFKA_PYTHON
from tests.matrix.features import Feature

FetchHint = Literal["none", "leader", "leader_below_16", "endpoints", "not_leader"]


@dataclass(frozen=True)
class Uses:
    """Which hints a client uses, by its sources.

    ``fetch``: ``leader`` CurrentLeader, from Fetch 12 on; ``leader_below_16`` the same, but it
    never asks for Fetch 16; ``endpoints`` only with NodeEndpoints, in Fetch 16; ``not_leader``
    as that, and only with NOT_LEADER_OR_FOLLOWER.
    """

    produce: bool = False
    fetch: FetchHint = "none"


@dataclass(frozen=True)
class Client:
    """A client library of one version.

    ``lacks`` has the reasons for what it cannot do, ``producer_settings`` what its producers
    need to outlast a leader move. ``returns``: its consumers may go back to the first record of
    a leader epoch, with or without a proxy (``tests.matrix.returns``).
    """

    family: str
    version: str
    start: Callable[[Path], ClientProcess]
    uses: Uses
    lacks: Mapping[Feature, str] = field(default_factory=dict)
    producer_settings: Mapping[str, str] = field(default_factory=dict)
    returns: bool = False

    @property
    def name(self) -> str:
        """Its name in options and on the page."""
        return f"{self.family}-{self.version}"


_CRAMJAM = "cramjam==2.14.0"
_KAFKA_PYTHON_CODECS = (_CRAMJAM, "lz4==4.4.5", "python-snappy==0.7.3", "zstandard==0.25.0")
_NO_IDEMPOTENCE = "it has no producer ids"


def _java(version: str, uses: Uses) -> Client:
    return Client("java", version, partial(java_clients, version=version), uses)


def _python(
    library: str,
    version: str,
    uses: Uses,
    also: tuple[str, ...] = (),
    lacks: Mapping[Feature, str] | None = None,
    producer_settings: Mapping[str, str] | None = None,
    returns: bool = False,
) -> Client:
    start = Environment(library, version, also).clients
    return Client(library, version, start, uses, lacks or {}, producer_settings or {}, returns)


_JAVA_HINTS = Uses(produce=True, fetch="leader")
_LIBRDKAFKA_HINTS = Uses(produce=True, fetch="endpoints")
_ALL = (
    _java("2.8.2", Uses()),
    _java("3.6.2", Uses()),
    _java("3.7.2", _JAVA_HINTS),
    _java("3.9.1", _JAVA_HINTS),
    _java("4.1.1", _JAVA_HINTS),
    _python(CONFLUENT, "2.3.0", Uses(), returns=True),
    _python(CONFLUENT, "2.5.0", _LIBRDKAFKA_HINTS, returns=True),
    _python(CONFLUENT, "2.16.1", _LIBRDKAFKA_HINTS),
    _python(
        KAFKA_PYTHON,
        "2.0.2",
        Uses(),
        also=_KAFKA_PYTHON_CODECS,
        lacks={
            Feature.IDEMPOTENT: _NO_IDEMPOTENCE,
            Feature.TRANSACTIONAL: _NO_IDEMPOTENCE,
            Feature.READ_COMMITTED: "it reads uncommitted records only",
            Feature.CLOSEST_REPLICA: "it has no client.rack",
        },
        producer_settings={"retries": "100"},  # 0 by default
    ),
    _python(KAFKA_PYTHON, "3.0.12", Uses(fetch="leader_below_16"), also=_KAFKA_PYTHON_CODECS),
    _python(
        AIOKAFKA,
        "0.14.0",
        Uses(),
        also=(
            _CRAMJAM,
            "async-timeout==5.0.1",
            "packaging==26.3",
            "typing_extensions==4.16.0",
        ),
    ),
    Client(
        "franz-go",
        franz_go.version(),
        franz_go.go_clients,
        Uses(produce=True, fetch="not_leader"),
    ),
)
CLIENTS: Mapping[str, Client] = {client.name: client for client in _ALL}
#: Of cells that are left out. Where brokers give hints all passes; of other clients of those of 4.1
#: ``tests.readiness`` has more.
_NEWEST_JAVA = "java-4.1.1"
_NEWEST_BROKER = "4.1.1-kraft"
_WITH_NEWEST_JAVA = frozenset(
    {_NEWEST_BROKER, "2.4.1-zk", "2.8.2-zk", "3.4.1-zk", "3.6.2-zk", "3.6.2-kraft"}
)


def is_run(broker: str, client: str) -> bool:
    """Whether there is a cell of a broker version and a client."""
    if client == _NEWEST_JAVA:
        return broker in _WITH_NEWEST_JAVA
    return broker != _NEWEST_BROKER


def newest(family: str) -> Client:
    """The newest client of a family; each family's come oldest first."""
    return [client for client in _ALL if client.family == family][-1]
