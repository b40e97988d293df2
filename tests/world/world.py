"""One world: a cluster, what befalls it, its clients, and the proxy between them or not.

All of it follows from the seed. The same world without the proxy is what clients are compared with.
"""

import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import trio

from leader_hints.core.hints.hold_rules import RECENT
from tests.world.brokers import PROXY, BrokerProcess, Failures, Refusal, Refusals, Services
from tests.world.clients import KINDS, Client, Seen, Told
from tests.world.happenings import BUSY, CALM, NODES, PEACE, UNTIL, Happening, Profile
from tests.world.model.broker import Broker
from tests.world.model.releases import FETCH, PRODUCE, RELEASES, Release
from tests.world.model.sessions import Sessions
from tests.world.model.truth import NO_LEADER, Record, Topic, Truth
from tests.world.network import End, Network
from tests.world.product import POLL, Proxy, shown, upstream
from tests.world.rack_readers import RACKS, READERS, RackReader
from tests.world.rogues import Rogue
from tests.world.schedule import Schedule

#: Seconds. After the last happening all heals, and clients go on for a while; then they pause, so
#: that polls settle what is left; then they go on, and leaders move once more.
PAUSE = UNTIL + 5.0
AWAKE = PAUSE + 7 * POLL
CLOSING = AWAKE + 1.5
END = CLOSING + 3.0
#: From when on the replicas of one broker are out of sync, where there are racks.
LAGS_AT = PAUSE + 2.0
#: Seconds until the controller finds that a broker which did not say so is gone.
_SESSION = 0.8
#: Seconds within which clients are started again that were away.
_STARTS = 0.6
#: Seconds between looks at whom brokers are taken for.
LOOK = 0.05
#: What floating point may add to a time.
_EPSILON = 1e-6


class World:
    """``said``: what happened, with times. ``at_rest``: what was not right when all had rested;
    ``moved``: what moved after that, and from which broker. ``behind``: at which time which client
    knew an epoch of a former topic, of which partition. ``rack_readers``: consumers that name their
    rack, and ``lags``: the node of which replicas fall out of sync then. ``outdated``: which client
    did so, and since when first. ``begun``: when processes were started. ``native_since``: since
    when there is a broker that gives hints itself.

    ``luck``: of what clients draw themselves; ``only``: which of them, by number, ask
    anything; ``None``: all. ``spare``: how many topics there are besides, of ten partitions, that
    no client uses, or if ``spare_used`` all of them. ``delays`` and ``told``: by client, see
    :class:`tests.world.clients.Client`; with delays brokers that have a route are asked as proxies
    ask them.
    Without ``proxied`` there are no proxies; where a process of theirs would begin again, the same
    listeners are away for as long.
    """

    def __init__(
        self,
        seed: int,
        profile: Profile,
        happenings: Sequence[Happening],
        *,
        proxied: bool,
        luck: int = 0,
        only: Collection[int] | None = None,
        delays: Sequence[Sequence[float]] = (),
        told: Sequence[Sequence[Told]] = (),
        spare: int = 0,
        spare_used: bool = False,
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.said: list[tuple[float, str]] = []
        self.refusals: Refusals = {}
        self.services: Services = {}
        self.failures: Failures = {}
        self.moved: list[tuple[str, int, int]] = []
        self.at_rest: list[str] = []
        self.behind: set[tuple[float, str, str, int]] = set()
        self.outdated: dict[tuple[str, str, int], float] = {}
        self.native_since = math.inf
        self.schedule = Schedule()
        self.network = Network(self.schedule, profile.latency)
        self.truth = Truth(NODES, ids=profile.ids)
        #: Of addresses, by number: as many as there are brokers.
        self.endpoints = {number: shown(number) for number in NODES}
        #: At which of them each broker is, and which is at each; since when, and where they were
        #: before.
        self.addresses = {node: node for node in NODES}
        self._nodes = {node: node for node in NODES}
        self.swapped_at = -math.inf
        self.former_addresses: dict[int, int] = {}
        self._prompt = False
        #: From which record on, and until when, a broker hears nothing.
        self._stale: dict[int, tuple[int, float]] = {}
        #: Brokers of which the controller hears nothing, and which hear nothing of it.
        self._forgotten: set[int] = set()
        self.brokers = {
            node: BrokerProcess(
                Broker(node, RELEASES[release]),
                self.truth,
                self.network,
                self.endpoints,
                kraft=profile.kraft,
                refusals=self.refusals,
                sessions=Sessions(random.Random(f"{seed} {node} sessions"), profile.slots),
                services=self.services,
                failures=self.failures,
            )
            for node, release in zip(NODES, profile.releases, strict=True)
        }
        self.truth.create(0.0, CALM, tuple(self._replicas(n) for n in range(len(NODES))))
        self.truth.create(
            0.0, BUSY, tuple(self._replicas(n + seed) for n in range(profile.partitions))
        )
        spares = [f"spare-{number}" for number in range(spare)]
        for name in spares:
            self.truth.create(0.0, name, tuple(map(self._replicas, range(10))))
        used = [BUSY, CALM, *(spares if spare_used else ())]
        for broker in self.brokers.values():
            broker.hidden = profile.hidden
            broker.hear_all()
        self.truth.decided = self._decided
        #: Processes that run now, by the nodes of their routes; all that ever did; the nodes of
        #: the routes of each; of those the ones that are away.
        self.fronts: dict[int, Proxy] = {}
        self.proxies: list[Proxy] = []
        self.begun: list[float] = []
        of_each = [(node,) for node in profile.fronted]
        self._processes = of_each if profile.sidecars else [profile.fronted]
        self._absent: set[int] = set()
        self._nursery: trio.Nursery | None = None
        for nodes in self._processes if proxied else ():
            self._begin_process(nodes)
        self._open()
        self.clients = [
            Client(
                f"{kind}-{'producer' if api == PRODUCE else 'consumer'}-{number}",
                KINDS[kind],
                api,
                used,
                self.network,
                [*self.endpoints.values()],
                self.say,
                luck,
                # As far as through a proxy: a millisecond may decide whom a client asks first.
                0.0 if proxied else profile.latency,
                delays[number - 1] if delays else (),
                told[number - 1] if told else (),
                [shown(node) for node in profile.fronted] if delays else (),
            )
            for number, (kind, api) in enumerate(profile.clients, 1)
        ]
        self._asking = [c for n, c in enumerate(self.clients) if only is None or n in only]
        self.rack_readers = [
            RackReader(
                kind, RACKS[node], [BUSY, CALM], self.network, [*self.endpoints.values()], self.say
            )
            for kind, node in READERS
            if profile.racks and only is None
        ]
        self.lags = random.Random(f"{seed} lag").choice(NODES)
        self._rogue = Rogue(
            seed,
            self.network,
            shown(NODES[0]),
            unnamed=profile.synthesize,
            refused=not profile.synthesize and all(RELEASES[r].ids for r in profile.releases),
        )
        self._plan(happenings)

    def _open(self) -> None:
        for number, endpoint in self.endpoints.items():
            self.network.hosts[upstream(number)] = self._upstream(number)
            self.network.hosts[endpoint] = self._listener(number)

    def _begin_process(self, nodes: Sequence[int]) -> None:
        one, other = self.profile.crossed or (0, 0)
        proxy = Proxy(
            self.network,
            f"{PROXY}-{len(self.proxies)}",
            nodes,
            behind={one: other, other: one},
            broker_at=self.broker_at,
            large=self.profile.large,
            synthesize=self.profile.synthesize,
            settle=self.profile.settle,
            late=self.profile.late,
            budget=self.profile.budget,
            racks=RACKS if self.profile.racks else {},
            workers=self.profile.workers,
        )
        self.proxies.append(proxy)
        self.begun.append(self.schedule.now)
        self.fronts.update(dict.fromkeys(nodes, proxy))
        if self._nursery is not None:
            proxy.start(self._nursery)

    def broker_at(self, address: int) -> int:
        """Return the node at an address, or at the address to which its route is crossed."""
        one, other = self.profile.crossed or (0, 0)
        return self._nodes[{one: other, other: one}.get(address, address)]

    def _upstream(self, address: int) -> Callable[[End], bool]:
        def accept(end: End) -> bool:
            return self.brokers[self._nodes[address]].accept(end)

        return accept

    def _listener(self, address: int) -> Callable[[End], bool]:
        directly = self._upstream(address)

        def accept(end: End) -> bool:
            front = self.fronts.get(address)
            if address in self._absent:
                return False
            return directly(end) if front is None else front.accept(address, end)

        return accept

    def _replicas(self, first: int) -> tuple[int, ...]:
        nodes = [node for node in NODES if node != self.profile.idle]
        return tuple(nodes[(first + n) % len(nodes)] for n in range(len(nodes)))

    def _plan(self, happenings: Sequence[Happening]) -> None:
        for happening in happenings:
            self.schedule.at(happening.at, self._happen, happening)
        for client in self._asking:
            self.schedule.at(1.0, client.start)
            self.schedule.at(PAUSE, client.pause)
            for at in (PAUSE, CLOSING, END):
                self.schedule.at(at - LOOK, self._note_behind, at, client)
            self.schedule.at(AWAKE, client.start)
        for reader in self.rack_readers:
            self.schedule.at(1.0, reader.start)
            self.schedule.at(PAUSE, reader.pause)
            self.schedule.at(AWAKE, reader.start)
        if self.rack_readers:
            self.schedule.at(LAGS_AT, self._fall_behind, self.lags)
        if self.profile.rogue:
            self.schedule.at(PEACE, self._rogue.start)
            self.schedule.at(PAUSE, self._rogue.stop)
        self.schedule.at(UNTIL + 1.0, self._heal)
        self.schedule.at(AWAKE - 0.1, self._rest)
        self.schedule.at(CLOSING, self._close)
        self._look()
        self._look_for_outdated()

    def say(self, text: str) -> None:
        """Note what happened."""
        self.said.append((self.schedule.now, text))

    def run(self) -> None:
        """Live."""
        if self.proxies:
            self.schedule.run_with(self.seed, self._live)
        else:
            self.schedule.run_until(END)

    async def _live(self) -> None:
        async with trio.open_nursery() as self._nursery:
            for proxy in self.proxies:
                proxy.start(self._nursery)
            await trio.sleep_until(END)
            self._nursery.cancel_scope.cancel()

    # How decisions spread.

    def _decided(self, number: int, record: Record) -> None:
        self.say(f"decided: {record}")
        for node, broker in self.brokers.items():
            if node in self._forgotten:
                continue
            draw = random.Random(f"{self.seed} {number} {node}")
            lag = 0.0 if self._prompt else draw.choice([0.0, self.profile.lag])
            first, second = draw.random() * lag, draw.random() * lag
            since, until = self._stale.get(node, (0, 0.0))
            if self.schedule.now < until:
                # With ZooKeeper a replica may hear the first record that its Metadata does not.
                first, second = until - self.schedule.now, 0.0
                if number == since and not self.profile.kraft:
                    first, second = 0.0, first
            if self.profile.kraft:
                # One log: what was read from it is given to all parts of the broker at once.
                second = min(second, 0.02)
            broker.will_hear(number, first, first + second)

    def _fall_behind(self, node: int) -> None:
        """Have all know that a broker's replicas are not in sync."""
        self.say(f"replicas of {node} are out of sync")
        for broker in self.brokers.values():
            broker.model.lagging = {node}

    # What happens.

    def _happen(self, happening: Happening) -> None:
        if BUSY in self.truth.now.topics:
            _HAPPENINGS[happening.kind](self, happening)

    def _move(self, happening: Happening) -> None:
        topic = self.truth.now.topics[BUSY]
        partition = happening.number % len(topic.leaders)
        led_by = topic.leaders[partition].node
        others = [n for n in topic.replicas[partition] if n != led_by and n in self.truth.now.alive]
        if led_by > 0 and others:
            to = happening.node if happening.node in others else others[0]
            self.truth.move(self.schedule.now, BUSY, partition, to)

    def _rise(self, happening: Happening) -> None:
        leaders = self.truth.now.topics[BUSY].leaders
        partition = happening.number % len(leaders)
        if leaders[partition].node > 0:
            self.truth.move(self.schedule.now, BUSY, partition, leaders[partition].node)

    def _reassign(self, happening: Happening) -> None:
        """Have all nodes but one be the replicas of a partition of any topic. The leader stays."""
        topics = sorted(self.truth.now.topics.items())
        places = [(name, n) for name, topic in topics for n in range(len(topic.leaders))]
        name, partition = places[happening.number % len(places)]
        leader = self.truth.now.topics[name].leaders[partition].node
        goes = happening.node if happening.node != leader else leader % len(NODES) + 1
        if leader != NO_LEADER:
            replicas = tuple(node for node in NODES if node != goes)
            self.truth.reassign(self.schedule.now, name, partition, replicas)

    def _recreate(self, happening: Happening) -> None:
        self.truth.delete(self.schedule.now, BUSY)
        self.schedule.after(0.05, self._create, happening)

    def _create(self, happening: Happening) -> None:
        if BUSY not in self.truth.now.topics:
            count = 1 + happening.number % 3
            replicas = tuple(self._replicas(happening.node + n) for n in range(count))
            self.truth.create(self.schedule.now, BUSY, replicas)

    def _grow(self, happening: Happening) -> None:
        if len(self.truth.now.topics[BUSY].leaders) < 4:
            self.truth.grow(self.schedule.now, BUSY, self._replicas(happening.node))

    def _storm(self, happening: Happening) -> None:
        for number in range(len(self.truth.now.topics[BUSY].leaders)):
            self._move(happening._replace(number=number))

    def _evict(self, happening: Happening) -> None:
        self.say(f"{happening.node} evicts all fetch sessions")
        self.brokers[happening.node].sessions.evict()

    def _reset(self, happening: Happening) -> None:
        self.say(f"all connections of {happening.node} are reset")
        self.brokers[happening.node].reset()

    def _hang(self, happening: Happening) -> None:
        broker = self.brokers[happening.node]
        if broker.running and not broker.hung:
            self.say(f"{broker.node} hangs")
            broker.hang()
            # Not for so long that the controller notices.
            self.schedule.after(min(happening.seconds, 0.7), self._go_on, broker)

    def _go_on(self, broker: BrokerProcess) -> None:
        if broker.hung:
            self.say(f"{broker.node} goes on")
            broker.go_on()

    def _restart(self, happening: Happening) -> None:
        broker = self.brokers[happening.node]
        if self._all_there(broker):
            self._end_broker(broker, clean=happening.number % 2 == 0)
            self.schedule.after(happening.seconds + _SESSION, self._start, broker)

    def _all_there(self, broker: BrokerProcess) -> bool:
        return broker.running and len(self.truth.now.alive) == len(NODES)

    def _end_broker(self, broker: BrokerProcess, *, clean: bool) -> None:
        self.say(f"{broker.node} is stopped" if clean else f"{broker.node} is killed")
        if clean:
            # Leaders move before it goes; it is listed until it has gone.
            self.truth.hand_over(self.schedule.now, broker.node)
            self.schedule.after(0.1, broker.stop)
            self.schedule.after(0.1, self.truth_left, broker.node)
        else:
            broker.stop()
            self.schedule.after(_SESSION, self.truth_left, broker.node)

    def _upgrade(self, happening: Happening) -> None:
        """Start a broker again as one of the later release, as soon as all others are there."""
        broker = self.brokers[happening.node]
        if self._all_there(broker):
            self._end_broker(broker, clean=True)
            after = happening.seconds + _SESSION
            self.schedule.after(after, self._start, broker, RELEASES[self.profile.later])
            self.schedule.after(after + 0.5, self._assign_ids)
        elif self.schedule.now < UNTIL:
            self.schedule.after(0.3, self._upgrade, happening)

    def _assign_ids(self) -> None:
        """Have the controller give ids to topics, when all brokers know of ids (KIP-516)."""
        releases = [broker.model.release for broker in self.brokers.values()]
        if not self.truth.ids and all(release.ids for release in releases):
            self.say("topics get ids")
            self.truth.assign_ids(self.schedule.now)

    def _swap(self, happening: Happening) -> None:
        """Stop two brokers and start each at the other's address, as new pods may.

        Who is behind a proxy, and what is advertised, goes with the address.
        """
        one = self.brokers[happening.node]
        other = self.brokers[happening.node % len(NODES) + 1]
        if self._all_there(one) and self._all_there(other):
            for broker in (one, other):
                self._end_broker(broker, clean=happening.number % 2 == 0)
            self.schedule.after(happening.seconds + _SESSION, self._start_swapped, one, other)
        elif self.schedule.now < UNTIL:
            self.schedule.after(0.3, self._swap, happening)

    def _start_swapped(self, one: BrokerProcess, other: BrokerProcess) -> None:
        self.say(f"{one.node} and {other.node} have each other's address")
        there = self.addresses
        self.swapped_at = self.schedule.now
        self.former_addresses = dict(there)
        there[one.node], there[other.node] = there[other.node], there[one.node]
        self._nodes = {address: node for node, address in there.items()}
        for broker in (one, other):
            # Something else may have started it again meanwhile.
            broker.stop()
            self._start(broker)

    def _lose(self, happening: Happening) -> None:
        """Kill a broker that alone is in sync. Others are elected uncleanly, or it comes back."""
        broker = self.brokers[happening.node]
        if self._all_there(broker):
            self.say(f"{broker.node} is killed, and no other replica is in sync")
            broker.stop()
            self.schedule.after(_SESSION, self.truth_left, broker.node, True)
            after = _SESSION + happening.seconds
            self.schedule.after(after, self._elect_uncleanly)
            back = max(after + 0.6 * happening.number - 0.6, _SESSION + 0.05)
            self.schedule.after(back, self._start, broker)

    def _elect_uncleanly(self) -> None:
        self.say("partitions without a leader are led by replicas that are not in sync")
        self.truth.elect_uncleanly(self.schedule.now)

    def truth_left(self, node: int, alone: bool = False) -> None:
        """Have the controller find that a broker is gone."""
        if node in self.truth.now.alive and not self.brokers[node].running:
            self.truth.left(self.schedule.now, node, alone=alone)

    def _start(self, broker: BrokerProcess, release: Release | None = None) -> None:
        release = release or broker.model.release
        self.say(f"{broker.node} is started, of {release.name}")
        if release.hints:
            self.native_since = min(self.native_since, self.schedule.now)
        # It has another session, if it was fenced before it was stopped.
        self._forgotten.discard(broker.node)
        broker.start(release, *self._lags())
        self.truth.joined(self.schedule.now, broker.node, self.addresses[broker.node])

    def _lags(self) -> tuple[float, float]:
        """Draw after how long replicas and Metadata of a broker know all that the controller has
        sent. Metadata is first, with ZooKeeper too (KafkaController.onBrokerStartup).
        """
        draw = random.Random(f"{self.seed} {len(self.truth.log)} start")
        lag = max(self.profile.lag, 0.4) * draw.random()
        return lag + 0.3 * draw.random(), lag

    def _fence(self, happening: Happening) -> None:
        """Have the controller take a broker for gone that is not: its session or lease ends."""
        alive = self.truth.now.alive
        if self.brokers[happening.node].running and len(alive) == len(NODES):
            self.say(f"{happening.node} is fenced")
            if not self.profile.kraft:
                self._forgotten.add(happening.node)
            self.truth.left(self.schedule.now, happening.node)
            self.schedule.after(happening.seconds, self._unfence, happening.node)

    def _unfence(self, node: int) -> None:
        if self.brokers[node].running and node not in self.truth.now.alive:
            self.say(f"{node} is not fenced any more")
            if node in self._forgotten:
                self._forgotten.remove(node)
                self.brokers[node].will_hear_all(*self._lags())
            self.truth.joined(self.schedule.now, node, self.addresses[node])

    def _lag(self, happening: Happening) -> None:
        self.say(f"{happening.node} hears nothing for {happening.seconds} s")
        until = self.schedule.now + happening.seconds
        self._stale[happening.node] = len(self.truth.log), until

    def _lull(self, happening: Happening) -> None:
        """Have all clients away for a while. Some, or all, are started again then."""
        self.say(f"clients are away for {happening.seconds} s")
        for number, client in enumerate(self.clients):
            client.pause()
            renewed = happening.number != number
            self.schedule.after(happening.seconds, self._come_back, client, renewed)

    def _be_away(self, happening: Happening) -> None:
        """Have all clients and readers away for a while. They are started one after the other then:
        the first one may know what its proxy does not.
        """
        self.say(f"clients and readers are away for {happening.seconds} s")
        draw = random.Random(f"{self.seed} {happening} starts")
        for client in (*self.clients, *self.rack_readers):
            client.pause()
            back = happening.seconds + _STARTS * draw.random()
            self.schedule.after(back, self._come_back, client, True)

    def _go_away(self, happening: Happening) -> None:
        client = self.clients[happening.number]
        self.say(f"{client.name} is away for {happening.seconds} s")
        client.pause()
        renewed = happening.node == NODES[0]
        self.schedule.after(happening.seconds, self._come_back, client, renewed)

    def _come_back(self, client: Client, renewed: bool) -> None:
        if client not in self._asking and client not in self.rack_readers:
            return
        self.say(f"{client.name} {'is started again' if renewed else 'comes back'}")
        if renewed:
            client.begin_again()
        client.start()

    def _end_process(self, happening: Happening) -> None:
        nodes = next((nodes for nodes in self._processes if happening.node in nodes), ())
        if not nodes or happening.node in self._absent:
            return
        self.say(f"the proxy of {', '.join(map(str, nodes))} is started again")
        self._absent.update(nodes)
        if self.proxies:
            self.fronts[happening.node].stop()
        else:
            for address in nodes:
                self.brokers[self.broker_at(address)].reset()
        self.schedule.after(0.1, self._return, nodes)

    def _return(self, nodes: Sequence[int]) -> None:
        self._absent.difference_update(nodes)
        if self.proxies:
            self._begin_process(nodes)

    def _has_process(self, address: int) -> bool:
        """Whether a process has the route of an address now, where there are proxies."""
        return address in self.profile.fronted and address not in self._absent

    def _end_worker(self, happening: Happening) -> None:
        address = happening.node
        if not self._has_process(address):
            return
        self.say(f"a worker of the proxy of {address} ends")
        if self.proxies:
            self.fronts[address].end_worker(happening.number, happening.seconds)
        else:
            self.brokers[self.broker_at(address)].reset()

    def _stop_worker(self, happening: Happening) -> None:
        address = happening.node
        if not self._has_process(address):
            return
        if self.proxies:
            self.say(
                f"a worker of {address}'s proxy, at its next hold, stops for {happening.seconds}"
            )
            self.fronts[address].stop_worker(happening.number, happening.seconds)
        else:
            self._hang(happening._replace(node=self.broker_at(address)))

    def _heal(self) -> None:
        for proxy in self.proxies:
            proxy.stop_no_worker()
        for broker in self.brokers.values():
            self._go_on(broker)

    def _look(self) -> None:
        if self.proxies:
            for proxy in {*self.fronts.values()}:
                proxy.look_at_identities()
            self.schedule.after(LOOK, self._look)

    def _note_behind(self, at: float, client: Client) -> None:
        for place in self._outdated(client):
            self.behind.add((at, client.name, *place))

    def _look_for_outdated(self) -> None:
        for client in self.clients:
            for place in self._outdated(client):
                self.outdated.setdefault((client.name, *place), self.schedule.now)
        self.schedule.after(10 * LOOK, self._look_for_outdated)

    def _outdated(self, client: Client) -> Iterator[tuple[str, int]]:
        """Iterate over the partitions of which a client knows an epoch of a former topic."""
        for name, topic in self.truth.now.topics.items():
            for partition, leader in enumerate(topic.leaders):
                work = client.work.get((name, partition))
                if work is None or work.leader is None or work.leader.epoch <= leader.epoch:
                    continue
                # What a hint has told since the topic is another is not what it would know anyway.
                if work.hinted_at is None or self._may_be_hinted(client, name, partition, topic):
                    yield name, partition

    def _may_be_hinted(self, client: Client, name: str, partition: int, topic: Topic) -> bool:
        """Whether the hint that a client took last may be of a topic before ``topic``.

        Either its broker had not learnt of that itself: one that gives hints (3.7) would have given
        the same. Or see :meth:`just_learnt`.
        """
        taken = client.work[name, partition].hinted_at, name, partition
        seen = next(s for s in client.seen if (s.at, s.name, s.place[1]) == taken)
        refusal = self.refusals[seen.request][name, partition]
        return refusal.incarnation < topic.number or self.just_learnt(seen, refusal)

    def just_learnt(self, seen: Seen, refusal: Refusal) -> bool:
        """Whether the broker's proxy has learnt of a hint's leader within the second before the
        error. Then the error is taken for one of that move: a limit that is stated.
        """
        return any(
            (move.topic, move.partition, move.leader) == (seen.name, seen.place[1], seen.hint)
            and move.at >= refusal.at - RECENT - _EPSILON
            for proxy in self.proxies
            if self._stood_behind(refusal.node, proxy)
            for move in proxy.moves
        )

    def higher_known_at(self, seen: Seen, refusal: Refusal) -> float:
        """Return when the broker's process first learnt of a higher epoch than a hint's, which came
        before brokers changed their addresses.
        """
        assert seen.hint is not None
        address = self.former_addresses.get(refusal.node, self.addresses[refusal.node])
        processes = [
            proxy
            for proxy, begun in zip(self.proxies, self.begun, strict=True)
            if begun <= seen.at and address in proxy.nodes
        ]
        return min(
            (
                move.at
                for proxy in processes[-1:]
                for move in proxy.moves
                if (move.topic, move.partition) == (seen.name, seen.place[1])
                and move.leader.epoch > seen.hint.epoch
            ),
            default=math.inf,
        )

    def _stood_behind(self, node: int, proxy: Proxy) -> bool:
        """Whether a broker is, or was, behind a process."""
        where = (self.addresses[node], self.former_addresses.get(node))
        return any(address in proxy.nodes for address in where)

    def keeps_lost_id(self, client: Client, at: float) -> bool:
        """Whether a client may keep to a synthetic id that is given up: a limit that is stated.

        Brokers of 3.7 end synthetic ids. An operator gives them up before that, and starts the
        consumers again that do not go on without an id (docs/topic-ids.md).
        """
        keeps = client.api == FETCH and not client.kind.drops_ids
        return keeps and self.profile.synthesize and at >= self.native_since

    def _rest(self) -> None:
        fronts = dict.fromkeys(self.fronts.values())
        self.at_rest += (text for proxy in fronts for text in proxy.pending())
        for proxy in fronts:
            self.at_rest += self._wrong_views(proxy)
            self.at_rest += proxy.unlike()
        shown = [t for t in self.truth.now.topics.values() if t.name not in self.profile.hidden]
        led = {leader.node for topic in shown for leader in topic.leaders}
        self.at_rest += (
            f"broker {node} is not proved"
            for proxy in fronts
            for node in proxy.unproved()
            if node in led
        )

    def _wrong_views(self, proxy: Proxy) -> Iterator[str]:
        for name, topic in sorted(self.truth.now.topics.items()):
            if name in self.profile.hidden:
                continue
            for partition, leader in enumerate(topic.leaders):
                for node, known, doubtful in proxy.leaders(name, partition):
                    place = f"of {name}-{partition} the route of {node}"
                    if known != leader:
                        yield f"{place} knows {known}, and not {leader}"
                    elif doubtful:
                        yield f"{place} is in doubt"

    def _close(self) -> None:
        """Have each broker behind a route lose a leadership, of which all hear at once."""
        self._prompt = True
        topics = [(n, t) for n, t in sorted(self.truth.now.topics.items()) if n in (BUSY, CALM)]
        for node in map(self.broker_at, self.profile.fronted):
            for name, topic in topics:
                led = [n for n, leader in enumerate(topic.leaders) if leader.node == node]
                if led and name not in self.profile.hidden:
                    to = next(other for other in topic.replicas[led[0]] if other != node)
                    self.moved.append((name, led[0], node))
                    self.truth.move(self.schedule.now, name, led[0], to)


_HAPPENINGS: Final[dict[str, Callable[[World, Happening], None]]] = {
    "move": World._move,
    "rise": World._rise,
    "reassign": World._reassign,
    "recreate": World._recreate,
    "grow": World._grow,
    "restart": World._restart,
    "upgrade": World._upgrade,
    "swap": World._swap,
    "lose": World._lose,
    "reset": World._reset,
    "evict": World._evict,
    "hang": World._hang,
    "storm": World._storm,
    "fence": World._fence,
    "stale": World._lag,
    "lull": World._lull,
    "absence": World._be_away,
    "away": World._go_away,
    "process": World._end_process,
    "worker": World._end_worker,
    "stop": World._stop_worker,
}
