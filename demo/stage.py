"""Stage: a mock cluster, and a proxy in front of its brokers, for one round."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from demo.move import Move
from demo.offered import offered_versions
from demo.ports import free_ports
from demo.proxy_process import ProxyProcess
from demo.report import COUNTED_APIS, RoundReport
from demo.traffic import Traffic
from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster

TOPIC = "demo"
PARTITIONS = 3
BROKERS = 3

METADATA_LAG_SECONDS = 0.01
"""How long Metadata gives the former leader after a move. ZooKeeper clusters were seen to need 2
to 30 ms. It is what costs clients without hints their back-offs: a client that asks for Metadata
too soon goes back to the former leader."""

_HOST = "127.0.0.1"
_SECONDS_BETWEEN_MOVES = 0.15  # Longer than librdkafka's first back-off: moves stay separate.


@dataclass(frozen=True)
class Stage:
    """What one round runs on. The brokers advertise the proxy's addresses."""

    cluster: MockCluster
    proxy: ProxyProcess
    hints_on: bool

    @property
    def bootstrap(self) -> str:
        """The proxy's addresses as a bootstrap.servers list."""
        return ",".join(sorted(self.proxy.addresses))


@contextmanager
def open_stage(hints_on: bool, settings: Mapping[str, str] | None = None) -> Iterator[Stage]:
    """Open a new cluster and a new proxy; `settings` are those of ProxyProcess.

    :raises MockClusterError: the cluster cannot start; or, at the end, it died meanwhile.
    :raises ProxyFailedError: the proxy did not start.
    """
    *listens, admin = ((_HOST, port) for port in free_ports(BROKERS + 1))
    advertise = dict(enumerate(listens, start=1))
    with MockCluster(BROKERS, {TOPIC: PARTITIONS}, BEFORE_HINTS, advertise) as cluster:
        routes = {listen: cluster.brokers[node] for node, listen in advertise.items()}
        with ProxyProcess(routes, "on" if hints_on else "off", admin, settings) as proxy:
            yield Stage(cluster, proxy, hints_on)


def play_round(
    stage: Stage, bootstrap: str, moves: int, on_move: Callable[[Move], None]
) -> RoundReport:
    """Move leaders under traffic, call `on_move` for each, and report all that was seen.

    :raises MockClusterError: the cluster died.
    :raises ProxyFailedError: the proxy ended.
    :raises TrafficError: the clients do not get through.
    """
    first_leaders = dict(stage.cluster.leaders)
    offered = {node: offered_versions(at) for node, at in stage.cluster.brokers.items()}
    made: list[Move] = []
    with Traffic(bootstrap, TOPIC, PARTITIONS) as traffic:
        traffic.await_flow()
        for number in range(moves):
            made.append(_move_leader(stage, traffic, number % PARTITIONS))
            on_move(made[-1])
        ledger = traffic.finish()
        return RoundReport(
            hints_on=stage.hints_on,
            moves=tuple(made),
            leaders={(p, epoch): node for (_, p), (node, epoch) in first_leaders.items()}
            | {(move.partition, move.epoch): move.leader for move in made},
            offered=offered,
            acknowledged=ledger.acknowledged,
            lost=ledger.lost,
            doubled=ledger.doubled,
            disordered=ledger.disordered,
            client_errors=tuple(traffic.client_errors),
            met_addresses=frozenset(traffic.met_addresses),
            client_bytes=traffic.client_bytes,
            proxy_addresses=stage.proxy.addresses,
            proxy_bytes=stage.proxy.metric("leader_hints_bytes_total", direction="up"),
            # Asked in this order: a request between the two cannot look as if it went past.
            mock_requests=stage.cluster.request_counts(),
            proxy_requests={
                api: stage.proxy.metric("leader_hints_requests_total", api=api)
                for api in COUNTED_APIS
            },
            hint_lines=stage.proxy.log("hint_given"),
            missed_lines=stage.proxy.log("hint_missed"),
            hints_counted=stage.proxy.metric("leader_hints_hints_given_total"),
        )


def _move_leader(stage: Stage, traffic: Traffic, partition: int) -> Move:
    before, _ = stage.cluster.leaders[TOPIC, partition]
    leader, epoch = stage.cluster.set_leader(
        TOPIC, partition, before % BROKERS + 1, METADATA_LAG_SECONDS
    )
    moved_at = time.monotonic()
    watch = traffic.watch(partition)
    traffic.await_recovery(watch)
    time.sleep(_SECONDS_BETWEEN_MOVES)
    stage.proxy.check()
    return Move(
        partition=partition,
        leader_before=before,
        leader=leader,
        epoch=epoch,
        produce_ms=_elapsed_ms(moved_at, watch.acknowledged_at),
        fetch_ms=_elapsed_ms(moved_at, watch.read_at),
        hints=tuple(
            line
            for line in stage.proxy.log("hint_given")
            if (line["partition"], line["epoch"]) == (partition, epoch)
        ),
    )


def _elapsed_ms(start: float, end: float | None) -> float | None:
    return None if end is None else (end - start) * 1000
