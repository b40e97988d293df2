"""One world: a cluster, what befalls it, its clients, and the proxy between them or not.

All of it follows from the seed. The same world without the proxy is what clients are compared with.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio

from tests.world.brokers import PROXY
from tests.world.clients import KINDS, Client
from tests.world.cluster import Cluster
from tests.world.happenings import BUSY, CALM, NODES, UNTIL, Happening, Profile
from tests.world.model.releases import PRODUCE
from tests.world.network import End, Network
from tests.world.product import POLL, Proxy, upstream
from tests.world.schedule import Schedule

#: Seconds. After the last happening all heals, and clients go on for a while; then they pause, so
#: that polls settle what is left; then they go on, and leaders move once more.
PAUSE = UNTIL + 5.0
AWAKE = PAUSE + 7 * POLL
CLOSING = AWAKE + 1.5
END = CLOSING + 3.0
#: Seconds between looks at whom brokers are taken for.
LOOK = 0.05
#: Seconds until a process that was ended is there again.
_ABSENCE = 0.1


class World:
    """``said``: what happened, with times. ``at_rest``: what was not right when all had rested;
    ``moved``: what moved after that, and from which broker. ``behind``: at which time which client
    knew an epoch of a former topic, of which partition.

    ``luck``: of what clients draw themselves. Without ``proxied`` there are no proxies; where a
    process of theirs would begin again, the same listeners are away for as long.
    """

    def __init__(
        self,
        seed: int,
        profile: Profile,
        happenings: Sequence[Happening],
        *,
        proxied: bool,
        luck: int = 0,
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.said: list[tuple[float, str]] = []
        self.moved: list[tuple[str, int, int]] = []
        self.at_rest: list[str] = []
        self.behind: set[tuple[float, str, str, int]] = set()
        self.schedule = Schedule()
        self.network = Network(self.schedule, profile.latency)
        self.cluster = Cluster(seed, profile, self.network, self.say)
        self.truth = self.cluster.truth
        self.brokers = self.cluster.brokers
        #: The nodes whose routes one process has; the processes that run now, by node; all that
        #: ever did; the nodes whose process is away.
        self._processes = [(n,) for n in profile.fronted] if profile.sidecars else [profile.fronted]
        self.fronts: dict[int, Proxy] = {}
        self.proxies: list[Proxy] = []
        self._away: set[int] = set()
        self._nursery: trio.Nursery | None = None
        for nodes in self._processes if proxied else ():
            self._begin_process(nodes)
        self._open()
        self.clients = [
            Client(
                f"{kind}-{'producer' if api == PRODUCE else 'consumer'}-{number}",
                KINDS[kind],
                api,
                [BUSY, CALM],
                self.network,
                [*self.cluster.endpoints.values()],
                self.say,
                luck,
            )
            for number, (kind, api) in enumerate(profile.clients, 1)
        ]
        self._plan(happenings)

    def _open(self) -> None:
        for node, broker in self.brokers.items():
            self.network.hosts[upstream(node)] = broker.accept
            self.network.hosts[self.cluster.endpoints[node]] = self._listener(node)

    def _listener(self, node: int) -> Callable[[End], bool]:
        def accept(end: End) -> bool:
            if node in self._away:
                return False
            front = self.fronts.get(node)
            return self.brokers[node].accept(end) if front is None else front.accept(node, end)

        return accept

    def _begin_process(self, nodes: Sequence[int]) -> None:
        proxy = Proxy(self.network, f"{PROXY}-{len(self.proxies)}", nodes)
        self.proxies.append(proxy)
        self.fronts.update(dict.fromkeys(nodes, proxy))
        if self._nursery is not None:
            proxy.start(self._nursery)

    def _plan(self, happenings: Sequence[Happening]) -> None:
        for happening in happenings:
            happen = _HAPPENINGS.get(happening.kind)
            if happen is None:
                self.schedule.at(happening.at, self.cluster.happen, happening)
            else:
                self.schedule.at(happening.at, happen, self, happening)
        for client in self.clients:
            self.schedule.at(1.0, client.start)
            self.schedule.at(PAUSE, client.pause)
            for at in (PAUSE, END):
                self.schedule.at(at - LOOK, self._note_behind, at, client)
            self.schedule.at(AWAKE, client.start)
        self.schedule.at(UNTIL + 1.0, self.cluster.heal)
        self.schedule.at(AWAKE - 0.1, self._rest)
        self.schedule.at(CLOSING, self._close)
        self._look()

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

    # What happens to clients and proxies.

    def _lull(self, happening: Happening) -> None:
        """Have all clients away for a while. Some, or all, are started again then."""
        self.say(f"clients are away for {happening.seconds} s")
        for number, client in enumerate(self.clients):
            client.pause()
            renewed = happening.number != number
            self.schedule.after(happening.seconds, self._come_back, client, renewed)

    def _go_away(self, happening: Happening) -> None:
        client = self.clients[happening.number]
        self.say(f"{client.name} is away for {happening.seconds} s")
        client.pause()
        renewed = happening.node == NODES[0]
        self.schedule.after(happening.seconds, self._come_back, client, renewed)

    def _come_back(self, client: Client, renewed: bool) -> None:
        self.say(f"{client.name} {'is started again' if renewed else 'comes back'}")
        if renewed:
            client.begin_again()
        client.start()

    def _end_process(self, happening: Happening) -> None:
        nodes = next((nodes for nodes in self._processes if happening.node in nodes), ())
        if not nodes or happening.node in self._away:
            return
        self.say(f"the proxy of {', '.join(map(str, nodes))} is started again")
        self._away.update(nodes)
        for node in nodes:
            front = self.fronts.get(node)
            if front is None:
                self.brokers[node].reset()
            else:
                front.stop()
        self.schedule.after(_ABSENCE, self._return, nodes)

    def _return(self, nodes: Sequence[int]) -> None:
        self._away.difference_update(nodes)
        if self.proxies:
            self._begin_process(nodes)

    # What is looked at.

    def _look(self) -> None:
        if self.proxies:
            for proxy in {*self.fronts.values()}:
                proxy.look_at_identities()
            self.schedule.after(LOOK, self._look)

    def _note_behind(self, at: float, client: Client) -> None:
        for name, topic in self.truth.now.topics.items():
            for partition, leader in enumerate(topic.leaders):
                work = client.work.get((name, partition))
                if work is None or work.leader is None or work.leader.epoch <= leader.epoch:
                    continue
                # What a hint has told since the topic is another is not what it would know anyway.
                if work.hinted_at is None or work.hinted_at < self.truth.born(topic.number):
                    self.behind.add((at, client.name, name, partition))

    def _rest(self) -> None:
        fronts = dict.fromkeys(self.fronts.values())
        self.at_rest += (text for proxy in fronts for text in proxy.in_hand())
        for proxy in fronts:
            self.at_rest += self._wrong_views(proxy)
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
        """Have each broker behind a route lose a leadership."""
        self.moved = self.cluster.lose_a_leadership_each(self.profile.fronted)


#: What does not happen to the cluster.
_HAPPENINGS: Final[dict[str, Callable[[World, Happening], None]]] = {
    "lull": World._lull,
    "away": World._go_away,
    "process": World._end_process,
}
