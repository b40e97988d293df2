"""Whatever happens in the process that decides, and whenever workers begin: they know the same."""

import random
from collections.abc import Iterator
from itertools import count

import pytest

from leader_hints.apis.metadata import ANY_TOPIC, UNTOLD_ID, ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.cluster import Clusters
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.net.workers import telling
from tests.core.samples import BROKER_3_6, topic_id
from tests.net.workers.sides import Hall, Seat
from tests.settings.samples import settings_of

_WORLDS = 150
_UNKNOWN_TOPIC, _HIDDEN = 3, 29
#: Versions of brokers that came before and behind an upgrade.
_RELEASES = {**BROKER_3_6, 1: 12, 3: 9}, BROKER_3_6


class _World:
    """Three routes to two clusters, and workers that come while things happen.

    What is said is taken some time later, in its order.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.hall = Hall(settings_of(), others=["s", "t"])
        self._clusters = Clusters(lambda: 100.0 + self._steps / 10)
        self._steps = 0
        #: Views of clusters that no route is of any more, which are emptied in steps.
        self._emptied: list[Iterator[None]] = []
        #: Which id each topic has now.
        self._ids: dict[tuple[int, str], bytes] = {}
        self._new_ids = map(topic_id, count(1))

    def live(self) -> None:
        """Have many things happen, and then everything taken that was said."""
        for _ in range(self._chance.randrange(10, 100)):
            self._steps += 1
            happens = self._chance.choice(
                [
                    self._meet_cluster,
                    self._learn_of_topic,
                    self._learn_of_topic,
                    self._forget_topic,
                    self._synthesize,
                    self._hide,
                    self._open_or_lose,
                    self._identify,
                    self._look_up_id,
                    self._switch,
                    self._begin_worker,
                    self._go_on,
                    self._go_on,
                ]
            )
            happens(self._chance.choice(self.hall.routes))
        for seat in self.hall.seats:
            for _ in seat.joining:
                pass
        self.hall.exchange()

    def _meet_cluster(self, route: Route) -> None:
        route.broker.view = self._clusters.met(self._chance.choice("AB")).view
        if self._chance.random() < 0.3:
            # The proxy's own connection, which is lost, was to the other one.
            return
        views = [one.broker.view for one in self.hall.routes]
        for gone in self._clusters.keep([view.cluster_id for view in views if view is not None]):
            self._emptied.append(gone.view.forgetting())

    def _learn_of_topic(self, route: Route) -> None:
        view, name = route.broker.view, f"t{self._chance.randrange(8)}"
        if view is None:
            return
        place = id(view), name
        if place not in self._ids or self._chance.random() < 0.3:
            # Recreated, perhaps by brokers of another release.
            self._ids[place] = self._chance.choice([ZERO_ID, UNTOLD_ID, next(self._new_ids)])
        view.learn(TopicMetadata(0, name, self._ids[place], (Led(0, 1, 5),)), 1)

    def _forget_topic(self, route: Route) -> None:
        if route.broker.view is not None:
            route.broker.view.topics.drop(f"t{self._chance.randrange(8)}")

    def _synthesize(self, route: Route) -> None:
        if route.broker.view is not None:
            route.broker.view.topics.synthesize_id(f"s{self._chance.randrange(4)}")

    def _hide(self, route: Route) -> None:
        name, error = self._chance.choice([(ANY_TOPIC, _UNKNOWN_TOPIC), ("t0", _HIDDEN), ("t0", 0)])
        if route.broker.view is not None:
            route.broker.view.hidden.take(TopicMetadata(error, name, ZERO_ID, ()), route.name)

    def _open_or_lose(self, route: Route) -> None:
        if self._chance.random() < 0.5:
            route.broker.lose()
        else:
            route.broker.maxima = self._chance.choice(_RELEASES)
            route.broker.plan = plan_for(route.broker.maxima)

    def _identify(self, route: Route) -> None:
        broker = route.broker
        broker.node = self._chance.choice([None, 1, 2])
        broker.guessed, broker.serves_anybody, broker.ids_everywhere = self._chance.choices(
            [True, False], k=3
        )

    def _look_up_id(self, route: Route) -> None:
        view = route.broker.view
        if view is not None:
            view.unknown_ids.used([topic_id(9000 + self._chance.randrange(4))], self._steps)
            view.unknown_ids.answered(view.topics.name, self._steps, self._steps)

    def _switch(self, route: Route) -> None:
        route.switch(self._chance.choice([*Mode]))
        self.hall.side.telling.switched(route)

    def _begin_worker(self, route: Route) -> None:
        if len(self.hall.seats) < 4:
            self.hall.seat(len(self.hall.seats) + 1, told=False)

    def _go_on(self, route: Route) -> None:
        for seat in self.hall.seats:
            if self._chance.random() < 0.5:
                next(seat.joining, None)
            if self._chance.random() < 0.5:
                seat.deliver()
        for steps in self._emptied:
            next(steps, None)
        self.hall.side.send_some()


def _known(route: Route) -> dict[str, object]:
    """Return what links look up of a route's broker and cluster."""
    broker, view = route.broker, route.broker.view
    known: dict[str, object] = {
        "mode": (route.mode, route.raised),
        "plans": (broker.plan, broker.plan or broker.former_plan),
        "node": (broker.node, broker.guessed),
        "ids": (broker.serves_anybody, broker.ids_everywhere),
        "cluster": view.cluster_id if view is not None else None,
    }
    if view is not None:
        known["topics"] = {(topic.name, topic.id) for topic in view.topics}
        known["have ids"] = view.topics.have_ids
        known["hidden"] = view.hidden.some(route.name), view.hidden.none(route.name)
        known["unknown"] = sorted(view.unknown_ids.lacking())
    return known


def _names(route: Route) -> set[str]:
    return {*route.broker.view.topics.synthetic_names} if route.broker.view is not None else set()


def _same(hall: Hall, seat: Seat) -> None:
    for route in hall.routes:
        theirs = seat.routes[route.name]
        assert _known(theirs) == _known(route)
        # Names of topics that are gone may stay.
        assert _names(theirs) >= _names(route)


async def test_workers_know_what_their_process_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that workers get what is known in many steps.
    monkeypatch.setattr(telling, "MOST_ENTRIES", 1)
    seats = 0
    for seed in range(_WORLDS):
        world = _World(seed)
        world.live()
        for seat in world.hall.seats:
            _same(world.hall, seat)
        seats += len(world.hall.seats)
    assert seats > _WORLDS
