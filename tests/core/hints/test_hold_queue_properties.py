from collections import Counter as Count
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.events import ErrorAnswered, HintGiven, HintMissed
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.wire.steps import at_once
from tests.core.hold_queues import NODES, as_kraft, failed, learn, route
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import FENCED, NOT_LEADER, UNKNOWN_EPOCH

_PARTITIONS = st.integers(0, 2)
_NODES = st.integers(1, 3)
#: What floating point may add to a bound.
_EPSILON = 1e-9


class Holds(RuleBasedStateMachine):
    """A cluster whose leaders move, links that meet errors, and a clock.

    ``moved``: leader by partition at each epoch, the last one the present. Brokers that lag
    say any older one. Time goes on in steps, and the hold queue is asked at each of its deadlines.
    """

    @initialize(
        mode=st.sampled_from([Mode.ON, Mode.ON, Mode.OBSERVE]),
        known=st.sampled_from([(1, 1, None), (1, 2, 3), (None, None, None)]),
        kraft=st.booleans(),
    )
    def begin(self, mode: Mode, known: tuple[int | None, ...], kraft: bool) -> None:
        self.now = 100.0
        self.mode = mode
        self.bounds = DEFAULT_RULES
        if kraft:
            longest = DEFAULT_RULES.kraft
            self.bounds = replace(DEFAULT_RULES, deadline=longest, link_second=longest)
        self.queue = HoldQueue(DEFAULT_RULES)
        shared_view = route(mode, clock=lambda: self.now).broker.view
        self.routes: list[Route] = []
        for number, node in enumerate(known):
            self.routes.append(route(mode, node=node, name=f"route-{number}"))
            self.routes[-1].broker.view = shared_view
            if kraft:
                as_kraft(self.routes[-1])
        self.links = [LinkState(self.routes[n % 3], n) for n in range(5)]
        self.moved: list[list[int]] = [[1], [1], [2]]
        self.said: set[tuple[int, int, int]] = set()
        self.held: dict[int, tuple[Held, float]] = {}
        self.holds: list[tuple[int, float, float]] = []
        self.failures: Count[int] = Count()
        self.told: Count[int] = Count()
        self._say(self.routes[0], None)

    def _say(self, to: Route, source: int | None, behind: int = 0) -> None:
        leaders = {}
        for partition, moves in enumerate(self.moved):
            epoch = max(len(moves) - 1 - behind, 0)
            leaders[partition] = (moves[epoch], epoch)
            self.said.add((partition, *leaders[partition]))
        learn(to, leaders, source=source)

    # What happens.

    @rule(partition=_PARTITIONS, node=st.sampled_from([1, 2, 3, 3, -1]))
    def a_leader_moves(self, partition: int, node: int) -> None:
        self.moved[partition].append(node)

    @rule(
        number=st.integers(0, 2),
        source=st.none() | _NODES,
        behind=st.sampled_from([0, 0, 0, 1, 2]),
        asked=st.booleans(),
    )
    def a_broker_answers(self, number: int, source: int | None, behind: int, asked: bool) -> None:
        asked_route = self.routes[number]
        self._say(asked_route, source, behind)
        if asked:
            topics: set[Topic] = {"t"}
            at_once(self.queue.asked(asked_route, topics, self.now))
        self._review()

    @rule(
        node=_NODES,
        behind=st.sampled_from([0, 0, 0, 1, 2]),
    )
    def a_broker_says_whether_it_leads(self, node: int, behind: int) -> None:
        """It answers by what it knows of the epochs that are looked for."""
        for wanted in self.queue.wanted_leaders():
            view = wanted.route.broker.view
            assert view is not None
            errors = {}
            for (name, partition), epoch in wanted.epochs.items():
                moves = self.moved[partition]
                known = max(len(moves) - 1 - behind, 0)
                leads = known == epoch and moves[known] == node
                leader = Leader(node, epoch)
                if leads:
                    view.leader_confirms(name, partition, leader)
                    self.said.add((partition, node, epoch))
                    errors[name, partition] = 0
                elif known > epoch:
                    errors[name, partition] = FENCED
                else:
                    view.leader_denies(name, partition, leader)
                    errors[name, partition] = NOT_LEADER if known == epoch else UNKNOWN_EPOCH
            if wanted.route.broker.node == node:
                self.queue.probed(wanted.route, errors, self.now)
        self._review()

    @rule(number=st.integers(0, 2), nodes=st.sets(_NODES), shift=st.integers(0, 1))
    def endpoints_change(self, number: int, nodes: set[int], shift: int) -> None:
        self.routes[number].broker.endpoints = {
            node: Endpoint(NODES[node].host, NODES[node].port + shift, None) for node in nodes
        }

    @rule(number=st.integers(0, 2), reachable=st.booleans())
    def brokers_come_and_go(self, number: int, reachable: bool) -> None:
        self.routes[number].broker.reachable = reachable

    @precondition(lambda self: len(self.held) < 5 or self.mode is Mode.OBSERVE)
    @rule(
        data=st.data(),
        error=st.sampled_from([NOT_LEADER, FENCED]),
        carries=st.booleans(),
        produce=st.booleans(),
    )
    def an_error_comes(self, data: st.DataObject, error: int, carries: bool, produce: bool) -> None:
        free = [link for link in self.links if link.number not in self.held]
        link = data.draw(st.sampled_from(free))
        partitions = data.draw(st.sets(_PARTITIONS, min_size=1))
        epochs = {
            p: -1 if produce else data.draw(st.integers(-1, len(self.moved[p])))
            for p in sorted(partitions)
        }
        key = ApiKey.PRODUCE if produce else ApiKey.FETCH
        held = failed(link, epochs, key, carries=carries, error=error)
        self.failures[link.number] += len(epochs)
        hints = self.queue.submit(held, self.now)
        self._check_events()
        if hints is not None:
            self._check_hints(held, hints)
            return
        assert self.mode is Mode.ON
        assert link.route.broker.reachable
        self.held[link.number] = (held, self.now)

    @rule(mode=st.sampled_from([Mode.ON, Mode.ON, Mode.OBSERVE, Mode.OFF]))
    def hints_are_switched(self, mode: Mode) -> None:
        if mode is self.mode:
            return
        self.mode = mode
        for switched in self.routes:
            switched.switch(mode)
            for held, hints in self.queue.switched(switched, self.now):
                kept, since = self.held.pop(held.link.number)
                assert kept is held
                assert not any(hints)
                self.holds.append((held.link.number, since, self.now))
        self._check_events()
        # What goes on at once; of what is only counted nothing is left either.
        assert not self.held

    @rule(number=st.integers(0, 4))
    def a_client_goes(self, number: int) -> None:
        self.queue.forget(number)
        self.held.pop(number, None)
        # Nothing is reported of what it waited for.
        self.told[number] = self.failures[number] = 0
        self.links[number] = LinkState(self.links[number].route, number)
        self.holds = [hold for hold in self.holds if hold[0] != number]

    @rule(step=st.sampled_from([0.0005, 0.004, 0.02, 0.05, 0.3, 0.9, 2.0]))
    def time_goes_on(self, step: float) -> None:
        until = self.now + step
        while True:
            deadline = self.queue.next_deadline()
            if deadline is None or deadline > until:
                break
            assert deadline > self.now
            self.now = deadline
            self._review()
        self.now = until
        self._review()

    def _review(self) -> None:
        for held, hints in self.queue.review(self.now):
            kept, since = self.held.pop(held.link.number)
            assert kept is held
            self.holds.append((held.link.number, since, self.now))
            assert self.now - since <= self.bounds.deadline + _EPSILON
            if held.scanned.carries:
                assert self.now - since <= self.bounds.shared + _EPSILON
            self._check_hints(held, hints)
        self._check_events()

    def _check_hints(self, held: Held, hints: list[LeaderHint | None]) -> None:
        """A hint is what a broker said, above the client's epoch; where that broker is now."""
        assert len(hints) == len(held.scanned.failures)
        for failure, epoch, hint in zip(held.scanned.failures, held.epochs, hints, strict=True):
            if hint is None:
                continue
            assert self.mode is Mode.ON
            assert (failure.partition, hint.leader, hint.epoch) in self.said
            assert hint.leader > 0
            assert hint.endpoint.host == NODES[hint.leader].host
            assert hint.epoch > epoch
            assert self.moved[failure.partition][hint.epoch] == hint.leader

    def _check_events(self) -> None:
        events, self.queue.events = self.queue.events, []
        for event in events:
            assert isinstance(event, HintGiven | HintMissed)
            answered: ErrorAnswered = event.answered
            self.told[answered.link] += 1
            assert 0 <= answered.hold_ms <= 1000 * (self.bounds.deadline + _EPSILON)
            if isinstance(event, HintGiven):
                assert event.epoch > answered.client_epoch
                assert (answered.partition, event.leader, event.epoch) in self.said

    # What always holds.

    @invariant()
    def no_deadline_has_passed(self) -> None:
        # What is due at once would keep its caller busy.
        if hasattr(self, "queue"):
            deadline = self.queue.next_deadline()
            assert deadline is None or deadline > self.now

    @invariant()
    def nothing_is_held_beyond_the_deadline_of_its_first_error(self) -> None:
        for held, since in getattr(self, "held", {}).values():
            assert self.now - since <= self.bounds.deadline + _EPSILON
            assert held.link.number in {link.number for link in self.links}

    @invariant()
    def no_link_is_held_beyond_its_part_of_any_second(self) -> None:
        holds = getattr(self, "holds", [])
        if holds:
            self.holds = holds = [hold for hold in holds if hold[2] > self.now - 3.0]
        for _, _, end in holds:
            spent = dict.fromkeys(range(5), 0.0)
            for link, since, until in holds:
                overlap = min(until, end) - max(since, end - 1.0)
                spent[link] += max(overlap, 0.0)
            assert max(spent.values()) <= self.bounds.link_second + _EPSILON

    @invariant()
    def every_failure_is_reported_once_it_is_decided(self) -> None:
        if not hasattr(self, "queue") or self.mode is not Mode.ON:
            return
        for number, failures in self.failures.items():
            waiting = self.held.get(number)
            undecided = len(waiting[0].scanned.failures) if waiting else 0
            assert self.told[number] == failures - undecided

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return
        self.time_goes_on(2.0)
        assert not self.held
        assert self.queue.next_deadline() is None
        assert self.queue.wanted_leaders() == []
        for link in self.links:
            assert self.told[link.number] == self.failures[link.number]


TestHolds = Holds.TestCase
TestHolds.settings = settings(max_examples=80, stateful_step_count=40)
