"""Many sidecars that poll one real cluster: what that costs the brokers."""

import math
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from bench.cost import cpu_seconds
from leader_hints.address import Address
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.app.part_settings import hold_rules
from leader_hints.core.cluster.poll_plan import FULL_POLL_EVERY
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.metadata.broker_poller import Cause, PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.limits import LimitSettings
from leader_hints.settings.subscription import SubscriptionSettings
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster

_TOPICS = 90
#: Partitions that one request makes: a broker writes a folder for each.
_AT_ONCE = 10
#: Sidecars are to poll so many times as often as by default, or what they cost would not be seen
#: beside what idle brokers do. How often they did is counted.
_FASTER = 10


@dataclass(frozen=True)
class SidecarCost:
    """CPU seconds of all brokers in a second: ``idle``, and while ``answers`` are given to polls in
    a second; ``default``: how many of those the sidecars would ask for by default.
    """

    sidecars: int
    partitions: int
    idle: float
    polled: float
    answers: float
    default: float

    @property
    def added(self) -> float:
        """What the polls add at the default interval."""
        return max(self.polled - self.idle, 0.0) / self.answers * self.default


def measure(sidecars: int, partitions: int, seconds: float) -> SidecarCost:
    """Compare brokers that are polled with the same brokers idle, for so many seconds each."""
    with (
        tempfile.TemporaryDirectory(prefix="leader-hints-sidecars-") as folder,
        RealCluster("3.6.2", "zk", folder=Path(folder), jvm_options=()) as cluster,
    ):
        _make_topics(cluster, partitions)
        idle = _rate(cluster, seconds)
        polled, answers = trio.run(partial(_poll, cluster, sidecars, partitions, seconds))
        default = sidecars * _answers_of_a_poll(partitions)
        default /= SubscriptionSettings().poll_interval
        return SidecarCost(sidecars, partitions, idle, polled, answers, default)


def _answers_of_a_poll(partitions: int) -> float:
    """Return how many answers a poll takes: some ask for all topics, and for none."""
    slices = math.ceil(partitions / SubscriptionSettings().slice_partitions)
    return (2 + (FULL_POLL_EVERY - 1) * slices) / FULL_POLL_EVERY


def _make_topics(cluster: RealCluster, partitions: int) -> None:
    admin = ClusterAdmin(cluster)
    each = partitions // _TOPICS
    layout = [[1 + number % 3] for number in range(each)]
    names = [f"polled-{number:03}" for number in range(_TOPICS)]
    for begin in range(0, _TOPICS, _AT_ONCE):
        admin.create_topics(dict.fromkeys(names[begin : begin + _AT_ONCE], layout))


def _rate(cluster: RealCluster, seconds: float) -> float:
    before, began = _cpu(cluster), time.monotonic()
    time.sleep(seconds)
    return (_cpu(cluster) - before) / (time.monotonic() - began)


def _cpu(cluster: RealCluster) -> float:
    return sum(cpu_seconds(broker.pid) for broker in cluster.brokers.values())


async def _poll(
    cluster: RealCluster, sidecars: int, partitions: int, seconds: float
) -> tuple[float, float]:
    """Return CPU seconds of all brokers, and answers to polls, in a second."""
    answers = 0

    def refreshed(cause: str, took: float) -> None:
        nonlocal answers
        answers += cause == Cause.POLL

    default = SubscriptionSettings()
    settings = PollerSettings(
        client=ClientSoftware("leader-hints", "bench"),
        poll=default.poll_interval / _FASTER,
        answer=default.answer_timeout,
        connect=10.0,
        reconnect_min=default.reconnect_min,
        reconnect_max=default.reconnect_max,
        slice_partitions=default.slice_partitions,
    )
    brokers = [*cluster.brokers.values()]
    routes = [Route(f"sidecar-{number}", Mode.ON) for number in range(sidecars)]
    async with trio.open_nursery() as nursery:
        for number, route in enumerate(routes):
            host, port = brokers[number % len(brokers)].upstream
            refresher = Refresher(
                [(route, Address(host, port))],
                HoldTimer(
                    HoldQueue(hold_rules(HoldSettings(), LimitSettings().held_responses)),
                    lambda event: None,
                ),
                RefreshRate(default.refreshes_per_second, default.refresh_burst),
                default.refresh_interval,
                settings,
                lambda event: None,
                refreshed,
            )
            nursery.start_soon(refresher.run)
            # Sidecars are not started at the same moment, and their polls keep apart.
            await trio.sleep(settings.poll / sidecars)
        with trio.fail_after(120):
            while any(len(route.broker.known) < partitions for route in routes):  # noqa: ASYNC110
                await trio.sleep(0.1)
        # Until then the brokers' code for it is not compiled, which costs more than the answers.
        await trio.sleep(seconds)
        before, answered, began = _cpu(cluster), answers, time.monotonic()
        await trio.sleep(seconds)
        took = time.monotonic() - began
        rates = (_cpu(cluster) - before) / took, (answers - answered) / took
        nursery.cancel_scope.cancel()
    return rates
