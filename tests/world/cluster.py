"""A cluster as it lives: its controller and brokers, how decisions spread, and what operators and
failures do to it. It knows neither clients nor proxies.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tests.world.brokers import BrokerProcess, Failures, Refusals
from tests.world.happenings import BUSY, CALM, NODES, Happening, Profile
from tests.world.model.broker import Broker
from tests.world.model.releases import RELEASES
from tests.world.model.truth import Record, Truth
from tests.world.network import Network
from tests.world.wire import Endpoint

#: Seconds until the controller finds that a broker which did not say so is gone.
_SESSION = 0.8


class Cluster:
    """``prompt``: all hear of decisions at once. ``refusals`` and ``failures``: what brokers note,
    see :mod:`.brokers`.
    """

    def __init__(
        self,
        seed: int,
        profile: Profile,
        network: Network,
        say: Callable[[str], None],
    ) -> None:
        self.refusals: Refusals = {}
        self.failures: Failures = {}
        self.prompt = False
        self._seed = seed
        self._profile = profile
        self._schedule = network.schedule
        self._say = say
        #: From which record on, and until when, a broker hears nothing.
        self._stale: dict[int, tuple[int, float]] = {}
        self.truth = Truth(NODES, ids=profile.ids)
        self.endpoints: Mapping[int, Endpoint] = {
            node: Endpoint(f"shown-{node}", 9092) for node in NODES
        }
        self.brokers = {
            node: BrokerProcess(
                Broker(node, RELEASES[release]),
                self.truth,
                network,
                self.endpoints,
                kraft=profile.kraft,
                refusals=self.refusals,
                failures=self.failures,
            )
            for node, release in zip(NODES, profile.releases, strict=True)
        }
        self.truth.create(0.0, CALM, tuple(self._replicas(n) for n in range(len(NODES))))
        self.truth.create(
            0.0, BUSY, tuple(self._replicas(n + seed) for n in range(profile.partitions))
        )
        for broker in self.brokers.values():
            broker.hidden = profile.hidden
            broker.hear_all()
        self.truth.decided = self._decided

    @property
    def now(self) -> float:
        return self._schedule.now

    def _replicas(self, first: int) -> tuple[int, ...]:
        nodes = [node for node in NODES if node != self._profile.idle]
        return tuple(nodes[(first + n) % len(nodes)] for n in range(len(nodes)))

    def _decided(self, number: int, record: Record) -> None:
        self._say(f"decided: {record}")
        for node, broker in self.brokers.items():
            draw = random.Random(f"{self._seed} {number} {node}")
            lag = 0.0 if self.prompt else draw.choice([0.0, self._profile.lag])
            first, second = draw.random() * lag, draw.random() * lag
            since, until = self._stale.get(node, (0, 0.0))
            if self.now < until:
                # With ZooKeeper a replica may hear the first record that its Metadata does not.
                first, second = until - self.now, 0.0
                if number == since and not self._profile.kraft:
                    first, second = 0.0, first
            if self._profile.kraft:
                # One log; the image is set first (BrokerMetadataPublisher).
                broker.will_hear(number, first + min(second, 0.02), first)
            else:
                # One queue for each broker: LeaderAndIsr, then UpdateMetadata.
                broker.will_hear(number, first, first + second)

    # What happens.

    def happen(self, happening: Happening) -> None:
        """Do what a happening says, if the busy topic is there."""
        if BUSY in self.truth.now.topics:
            _HAPPENINGS[happening.kind](self, happening)

    def _move(self, happening: Happening) -> None:
        topic = self.truth.now.topics[BUSY]
        partition = happening.number % len(topic.leaders)
        led_by = topic.leaders[partition].node
        others = [n for n in topic.replicas[partition] if n != led_by and n in self.truth.now.alive]
        if led_by > 0 and others:
            to = happening.node if happening.node in others else others[0]
            self.truth.move(self.now, BUSY, partition, to)

    def _rise(self, happening: Happening) -> None:
        leaders = self.truth.now.topics[BUSY].leaders
        partition = happening.number % len(leaders)
        if leaders[partition].node > 0:
            self.truth.move(self.now, BUSY, partition, leaders[partition].node)

    def _recreate(self, happening: Happening) -> None:
        self.truth.delete(self.now, BUSY)
        self._schedule.after(0.05, self._create, happening)

    def _create(self, happening: Happening) -> None:
        if BUSY not in self.truth.now.topics:
            count = 1 + happening.number % 3
            replicas = tuple(self._replicas(happening.node + n) for n in range(count))
            self.truth.create(self.now, BUSY, replicas)

    def _grow(self, happening: Happening) -> None:
        if len(self.truth.now.topics[BUSY].leaders) < 4:
            self.truth.grow(self.now, BUSY, self._replicas(happening.node))

    def _storm(self, happening: Happening) -> None:
        for number in range(len(self.truth.now.topics[BUSY].leaders)):
            self._move(happening._replace(number=number))

    def _reset(self, happening: Happening) -> None:
        self._say(f"all connections of {happening.node} are reset")
        self.brokers[happening.node].reset()

    def _hang(self, happening: Happening) -> None:
        broker = self.brokers[happening.node]
        if broker.running and not broker.hung:
            self._say(f"{broker.node} hangs")
            broker.hang()
            # Not for so long that the controller notices.
            self._schedule.after(min(happening.seconds, 0.7), self._go_on, broker)

    def _go_on(self, broker: BrokerProcess) -> None:
        if broker.hung:
            self._say(f"{broker.node} goes on")
            broker.go_on()

    def _restart(self, happening: Happening) -> None:
        broker = self.brokers[happening.node]
        if not broker.running or len(self.truth.now.alive) < len(NODES):
            return
        clean = happening.number % 2 == 0
        self._say(f"{broker.node} is stopped" if clean else f"{broker.node} is killed")
        if clean:
            # Leaders move before it goes.
            self.truth.left(self.now, broker.node)
            self._schedule.after(0.1, broker.stop)
        else:
            broker.stop()
            self._schedule.after(_SESSION, self._find_gone, broker.node)
        self._schedule.after(happening.seconds + _SESSION, self._start, broker)

    def _find_gone(self, node: int) -> None:
        if node in self.truth.now.alive and not self.brokers[node].running:
            self.truth.left(self.now, node)

    def _start(self, broker: BrokerProcess) -> None:
        self._say(f"{broker.node} is started")
        draw = random.Random(f"{self._seed} {len(self.truth.log)} start")
        lag = max(self._profile.lag, 0.4) * draw.random()
        # Metadata comes first, to new brokers with ZooKeeper too (KafkaController.onBrokerStartup).
        broker.start(broker.model.release, lag + 0.3 * draw.random(), lag)
        self.truth.joined(self.now, broker.node)

    def _fence(self, happening: Happening) -> None:
        """Have the controller take a broker for gone that is not: its session or lease ends."""
        alive = self.truth.now.alive
        if self.brokers[happening.node].running and len(alive) == len(NODES):
            self._say(f"{happening.node} is fenced")
            self.truth.left(self.now, happening.node)
            self._schedule.after(happening.seconds, self._unfence, happening.node)

    def _unfence(self, node: int) -> None:
        if self.brokers[node].running and node not in self.truth.now.alive:
            self._say(f"{node} is not fenced any more")
            self.truth.joined(self.now, node)

    def _lag(self, happening: Happening) -> None:
        self._say(f"{happening.node} hears nothing for {happening.seconds} s")
        self._stale[happening.node] = len(self.truth.log), self.now + happening.seconds

    def heal(self) -> None:
        """Have all brokers answer again."""
        for broker in self.brokers.values():
            self._go_on(broker)

    def lose_a_leadership_each(self, nodes: Iterable[int]) -> list[tuple[str, int, int]]:
        """Have each of ``nodes`` lose one that a proxy may see, if it has any.

        All hear of it at once. Returns topics, partitions and who led them.
        """
        self.prompt = True
        lost = []
        for node in nodes:
            for name, topic in sorted(self.truth.now.topics.items()):
                led = [n for n, leader in enumerate(topic.leaders) if leader.node == node]
                if led and name not in self._profile.hidden:
                    to = next(other for other in topic.replicas[led[0]] if other != node)
                    lost.append((name, led[0], node))
                    self.truth.move(self.now, name, led[0], to)
        return lost


_HAPPENINGS: Final[dict[str, Callable[[Cluster, Happening], None]]] = {
    "move": Cluster._move,
    "rise": Cluster._rise,
    "recreate": Cluster._recreate,
    "grow": Cluster._grow,
    "restart": Cluster._restart,
    "reset": Cluster._reset,
    "hang": Cluster._hang,
    "storm": Cluster._storm,
    "fence": Cluster._fence,
    "stale": Cluster._lag,
}
