"""What is done to a stage. A table: names, and what begins and ends."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from tests.chaos.stage import Stage
from tests.chaos.toxiproxy import Stream
from tests.harness.admin import TopicPartition

#: A fault for a stage and its topics; what it does to whom is by chance. It lasts as its context.
Fault = Callable[[Stage, random.Random, list[TopicPartition]], AbstractContextManager[None]]
_STREAMS: tuple[Stream, Stream] = ("upstream", "downstream")


@contextmanager
def _leaders_move(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    stage.move_leaders(partitions)
    yield
    stage.move_leaders(partitions)


@contextmanager
def _broker_killed(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition], *, controller: bool
) -> Iterator[None]:
    node = stage.controller()
    node = node if controller else chance.choice([other for other in stage.nodes if other != node])
    stage.cluster.brokers[node].kill()
    yield
    stage.restart(node)


@contextmanager
def _broker_stopped(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    node = chance.choice(stage.nodes)
    stage.cluster.brokers[node].stop()
    yield
    stage.restart(node)


@contextmanager
def _broker_frozen(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    broker = stage.cluster.brokers[chance.choice(stage.nodes)]
    with broker.frozen():
        yield


@contextmanager
def _proxy_ends(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition], *, killed: bool
) -> Iterator[None]:
    if not stage.proxied:
        # The same for clients: their connections end, and none can be made.
        with _everything_cut(stage, chance, partitions):
            yield
        return
    (stage.kill_proxy if killed else stage.stop_proxy)()
    yield
    stage.start_proxy()


@contextmanager
def _proxy_frozen(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    if not stage.proxied:
        with _silence(stage, chance, partitions):
            yield
        return
    with stage.proxy.frozen():
        yield


@contextmanager
def _everything_cut(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    with ExitStack() as cut:
        for relay in stage.relays:
            if relay.startswith("before"):
                cut.enter_context(stage.toxiproxy.cut(relay))
        yield


@contextmanager
def _cut(stage: Stage, chance: random.Random, partitions: list[TopicPartition]) -> Iterator[None]:
    with stage.toxiproxy.cut(chance.choice(stage.relays)):
        yield


@contextmanager
def _reset(stage: Stage, chance: random.Random, partitions: list[TopicPartition]) -> Iterator[None]:
    relay = chance.choice(stage.relays)
    with stage.toxiproxy.toxic(relay, "reset_peer", chance.choice(_STREAMS), {"timeout": 0}):
        yield


@contextmanager
def _ends_within_frames(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    """Each connection ends after so many bytes: most often within a frame."""
    relay, most = chance.choice(stage.relays), chance.randrange(20, 5000)
    with stage.toxiproxy.toxic(relay, "limit_data", chance.choice(_STREAMS), {"bytes": most}):
        yield


@contextmanager
def _silence(
    stage: Stage, chance: random.Random, partitions: list[TopicPartition]
) -> Iterator[None]:
    """Connections are taken and stay open, and nothing comes through: half-open, or no answer."""
    relay = chance.choice(stage.relays)
    with stage.toxiproxy.toxic(relay, "timeout", chance.choice(_STREAMS), {"timeout": 0}):
        yield


@contextmanager
def _late(stage: Stage, chance: random.Random, partitions: list[TopicPartition]) -> Iterator[None]:
    late = {"latency": chance.randrange(50, 500), "jitter": 50}
    with stage.toxiproxy.toxic(chance.choice(stage.relays), "latency", "downstream", late):
        yield


@contextmanager
def _slow(stage: Stage, chance: random.Random, partitions: list[TopicPartition]) -> Iterator[None]:
    """A slow reader or writer, and frames in many pieces."""
    relay, stream = chance.choice(stage.relays), chance.choice(_STREAMS)
    slices = {"average_size": 30, "size_variation": 20, "delay": 100}
    with (
        stage.toxiproxy.toxic(relay, "bandwidth", stream, {"rate": chance.randrange(2, 30)}),
        stage.toxiproxy.toxic(relay, "slicer", stream, slices),
    ):
        yield


FAULTS: Mapping[str, Fault] = {
    "leaders move": _leaders_move,
    "broker SIGKILL": partial(_broker_killed, controller=False),
    "controller SIGKILL": partial(_broker_killed, controller=True),
    "broker restart": _broker_stopped,
    "broker SIGSTOP": _broker_frozen,
    "proxy SIGKILL": partial(_proxy_ends, killed=True),
    "proxy restart": partial(_proxy_ends, killed=False),
    "proxy SIGSTOP": _proxy_frozen,
    "cut": _cut,
    "reset": _reset,
    "end within frames": _ends_within_frames,
    "silence": _silence,
    "latency": _late,
    "slow": _slow,
}


def order(seed: int) -> Iterator[tuple[str, random.Random]]:
    """Iterate for ever over faults by a seed, each with its own chance: equal in every arm."""
    chance = random.Random(seed)
    while True:
        for name in chance.sample(list(FAULTS), len(FAULTS)):
            yield name, random.Random(chance.random())
