"""Sidecars before a cluster, which send consumers to the replica in their rack (KIP-392)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints, ProxyFleet
from tests.harness.waiting import until

#: By library. Java's member joins its group again when the racks of its partitions change, as with
#: a broker that stops or starts (KIP-881). By the default assignor it then begins at what it has
#: committed.
GROUP_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "java": {
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer."
        "CooperativeStickyAssignor"
    }
}
#: Long enough for the pause after a replica was named, and for a lease of librdkafka.
_PATIENCE_S = 150.0


class RackFleet:
    """A sidecar for each broker. ``racks``: by node id, where the brokers have none."""

    def __init__(
        self,
        cluster: RealCluster,
        folder: Path,
        mode: Hints = "on",
        *,
        racks: Mapping[int, str] | None = None,
        hints: Hints = "on",
        poll_ms: int | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """``poll_ms``: how often brokers are asked what is in sync; ``None``: as by default."""
        routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
        self.proxies = ProxyFleet.before(
            routes, folder, hints=hints, sidecars=True, arguments=arguments
        )
        settings: dict[str, str] = {"LEADER_HINTS_CLOSEST_REPLICA": mode}
        if racks:
            settings["LEADER_HINTS_RACKS"] = ",".join(f"{n}={rack}" for n, rack in racks.items())
        if poll_ms is not None:
            settings["LEADER_HINTS_SUBSCRIPTION__POLL_INTERVAL_MS"] = str(poll_ms)
        for process in self.proxies.processes:
            process.environment |= settings
        self.bootstrap = cluster.bootstrap

    def read(self, path: str) -> float:
        """Return bytes that consumers with a rack have read on a path: same or crossing."""
        return self.proxies.metric("leader_hints_consumer_bytes_total", path=path)

    def wait_read_nearby(self, bytes_more: int) -> tuple[float, float]:
        """Wait until so much more was read in the own rack; return that and what crossed then."""
        same, crossing = self.read("same"), self.read("crossing")
        until(
            lambda: self.read("same") >= same + bytes_more,
            f"{bytes_more} bytes more are read in the rack",
            _PATIENCE_S,
        )
        return self.read("same") - same, self.read("crossing") - crossing
