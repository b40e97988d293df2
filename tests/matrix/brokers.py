"""The broker versions of the matrix."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness.cluster import Mode, RealCluster

#: Serves consumers from the replica in their rack (KIP-392, brokers from 2.4 on).
CLOSEST_REPLICA = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
}


@dataclass(frozen=True)
class BrokerKind:
    """A broker version in one mode; ``synthesize``: behind proxies that make topic ids up."""

    version: str
    mode: Mode
    synthesize: bool = False

    @property
    def name(self) -> str:
        """Its name in options and on the page."""
        return f"{self.version}-{self.mode}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its version."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def native(self) -> bool:
        """Whether it gives hints itself, so that the proxy lets all pass."""
        return self.numbers >= (3, 7)

    @property
    def fetches_with_endpoints(self) -> bool:
        """Whether Fetch 16 can be had before it: below 2.8 it has no topic ids itself."""
        return self.synthesize or self.numbers >= (2, 8)

    def cluster(self, folder: Path, settings: Mapping[str, str] | None = None) -> RealCluster:
        """Three brokers of it in three racks, with further settings."""
        overrides = {**CLOSEST_REPLICA, **(settings or {})}
        return RealCluster(self.version, self.mode, folder=folder, overrides=overrides)


_ALL = (
    BrokerKind("2.4.1", "zk"),
    BrokerKind("2.8.2", "zk"),
    BrokerKind("3.4.1", "zk"),
    BrokerKind("3.6.2", "zk"),
    BrokerKind("3.6.2", "kraft"),
    BrokerKind("3.7.2", "zk"),
    BrokerKind("3.9.1", "zk"),
    BrokerKind("4.1.1", "kraft"),
)
BROKERS: Mapping[str, BrokerKind] = {kind.name: kind for kind in _ALL}
