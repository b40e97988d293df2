"""What befalls a world: drawn from its seed as a list, of which any part can be left out."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from tests.world.clients import KINDS, LONG_POLL
from tests.world.model.releases import FETCH, PRODUCE, RELEASES

NODES: Final = (1, 2, 3)
#: The topic to which things happen, and the one to which none do but elections and reassignments.
BUSY, CALM = "busy", "calm"
#: Seconds: of peace at first, and until the last happening.
PEACE = 3.0
UNTIL = 11.0
#: Seeds from which on half of the worlds hold errors that can carry no hint: those before stay as
#: they are, since tests and mutants name them.
SETTLING_FROM = 100_000
#: Seeds from which on, up to those with racks, the links of each process are in two workers.
WORKERS_FROM = 200_000
#: Seeds from which on, up to those with racks, workers end as well, and begin again.
WORKERS_END_FROM = 250_000
#: Seeds from which on, up to those with racks, workers are stopped as well, and go on.
WORKERS_STOP_FROM = 275_000
#: Seeds from which on every other world has racks, and consumers that name theirs. None of them is
#: one in which links may keep little: that is drawn for fewer clients.
RACKS_FROM = 300_000
#: Seeds from which on partitions have other replicas, in worlds with racks.
REASSIGNED_FROM = 1_000_000
#: Bytes that links may keep together; in worlds whose seeds end with this digit so few that some
#: errors must do without.
_ENOUGH, _LITTLE, _TIGHT = 1 << 23, 1 << 13, 9


class Happening(NamedTuple):
    """``kind``: see :mod:`tests.world.world`. ``number``: of a partition, or how many; ``node``:
    which broker, or whom it leads to; ``seconds``: for how long.
    """

    at: float
    kind: str
    number: int = 0
    node: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.at:.3f} {self.kind} number={self.number} node={self.node} "
            f"seconds={self.seconds:g}"
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """What a world is like.

    ``ids``: its topics have ids. ``releases``: of its brokers. ``lag``: seconds after which brokers
    have learnt of what was decided. ``latency``: of connections. ``fronted``: the nodes with a
    route. ``clients``: their kind and the API that they use. ``partitions``: of the busy topic.
    ``sidecars``: each route is of a process of its own. ``hidden``: topics that the proxy's
    principal may not see. ``idle``: a broker that was added and has no replicas yet, 0: none.
    ``large``: Metadata is too large to be read in passing. ``crossed``: two nodes whose routes lead
    to each other's brokers. ``synthesize``: proxies give topics synthetic ids. ``rogue``: there is
    a client that uses ids which nobody has. ``later``: what brokers are upgraded to, "": nothing.
    ``slots``: of how many fetch sessions each broker has. ``settle``: errors that can carry no hint
    are held until all brokers name the leader. ``late``: a defect that is planted: proxies pass
    each error that they need not hold that many seconds later, and do not count that as a hold.
    ``budget``: bytes that the links of a process may keep together. ``racks``: each broker is in a
    rack of its own, and consumers are sent to the replica in theirs. ``workers``: in how many
    workers of each process links are, 1: in the process itself.
    """

    kraft: bool
    ids: bool
    releases: tuple[str, ...]
    lag: float
    latency: float
    fronted: tuple[int, ...]
    clients: tuple[tuple[str, int], ...]
    partitions: int
    sidecars: bool
    hidden: tuple[str, ...]
    idle: int
    large: bool
    crossed: tuple[int, ...]
    synthesize: bool
    rogue: bool
    later: str = ""
    slots: int = 1000
    settle: bool = False
    late: float = 0.0
    budget: int = _ENOUGH
    racks: bool = False
    workers: int = 1

    def __str__(self) -> str:
        mode = "KRaft" if self.kraft else "ZooKeeper"
        return (
            f"{mode}, brokers {', '.join(self.releases)}, {'with' if self.ids else 'no'} topic "
            f"ids, lag up to {self.lag:g} s, proxied: {', '.join(map(str, self.fronted))}"
            f"{', by sidecars' if self.sidecars else ''}"
            f"{', hidden: ' + ', '.join(self.hidden) if self.hidden else ''}"
            f"{f', {self.idle} is idle' if self.idle else ''}"
            f"{', large' if self.large else ''}"
            f"{f', crossed: {self.crossed}' if self.crossed else ''}"
            f"{', synthetic ids' if self.synthesize else ''}{', a rogue' if self.rogue else ''}"
            f"{', settled errors' if self.settle else ''}{', racks' if self.racks else ''}"
            f"{f', {self.workers} workers' if self.workers > 1 else ''}"
            f"{f', upgraded to {self.later}' if self.later else ''}"
            f"{f', {self.slots} fetch sessions' if self.slots < 1000 else ''}"
            f"{f', errors {self.late:g} s late' if self.late else ''}"
            f"{f', {self.budget} bytes for links' if self.budget < _ENOUGH else ''}"
        )


def profile(seed: int) -> Profile:
    """Draw what a world is like."""
    draw = random.Random(f"{seed} profile")
    kraft = draw.random() < 0.4
    names = [name for name, release in RELEASES.items() if not release.hints]
    first = names.index("3.3") if kraft else 0
    oldest = draw.randrange(first, len(names))
    mixed = draw.random() < 0.3
    releases = tuple(
        names[draw.randint(oldest, min(oldest + 1, len(names) - 1)) if mixed else oldest]
        for _ in NODES
    )
    with_ids = all(RELEASES[name].ids for name in releases)
    fronted = draw.choice([(1,), (1, 2), (1, 2, 3), (1, 2, 3)])
    drawn = Profile(
        kraft=kraft,
        ids=with_ids and (kraft or draw.random() < 0.6),
        releases=releases,
        lag=draw.choice([0.0, 0.02, 0.3, 1.0]),
        latency=draw.choice([0.0002, 0.002]),
        fronted=fronted,
        clients=tuple(
            (kind, draw.choice([PRODUCE, FETCH])) for kind in draw.sample(sorted(KINDS), k=4)
        ),
        partitions=draw.choice([1, 2, 3]),
        sidecars=draw.random() < 0.6,
        hidden=draw.choice([(), (), (), (), (BUSY,), (CALM,)]),
        idle=draw.choice([0, 0, 0, 0, *NODES[1:]]),
        large=draw.random() < 0.3,
        crossed=(),
        synthesize=False,
        rogue=draw.random() < 0.2,
        budget=_LITTLE if seed % 10 == _TIGHT else _ENOUGH,
        settle=seed >= SETTLING_FROM and random.Random(f"{seed} settle").random() < 0.5,
        racks=seed >= RACKS_FROM and seed % 2 == 0,
        workers=2 if WORKERS_FROM <= seed < RACKS_FROM else 1,
    )
    return replace(_special(drawn, draw), slots=draw.choice([1000, 1000, 1000, 1000, 1, 0]))


def newer(of: Profile) -> Profile:
    """Return the same with brokers that take Fetch by topic ids from the beginning."""
    latest = [name for name, release in RELEASES.items() if not release.hints][-1]
    later = latest if of.later and not RELEASES[of.later].hints else of.later
    return replace(of, releases=(latest,) * len(of.releases), later=later)


def _special(drawn: Profile, draw: random.Random) -> Profile:
    """Have the world be of a kind that few are."""
    if drawn.fronted == NODES:
        if not drawn.sidecars and draw.random() < 0.1:
            return replace(drawn, crossed=(1, 2), idle=0, hidden=())
        if not (drawn.ids or drawn.hidden) and draw.random() < 0.3:
            # No ids are synthesized in front of a broker that leads nothing.
            drawn = replace(drawn, synthesize=True, rogue=True, idle=0)
    names = [*RELEASES]
    later = names[max(map(names.index, drawn.releases)) + 1 :]
    if later and draw.random() < 0.25:
        return replace(drawn, later=draw.choice(later))
    return drawn


#: How often each kind of happening is drawn.
_WEIGHTS: Final = {
    "move": 8.0,
    "rise": 2.0,
    "recreate": 1.0,
    "grow": 0.5,
    "restart": 1.0,
    "fence": 0.5,
    "stale": 1.0,
    "away": 1.0,
    "process": 0.3,
    "reset": 1.0,
    "hang": 0.5,
    "storm": 1.0,
}
_GAPS: Final = (0.0, 0.005, 0.05, 0.2, 0.6, 1.5)
#: What rarely comes together by chance, and has misled the proxy or might: seconds after the one
#: before, kind, which of two brokers, and seconds that it lasts. Each is about one partition.
_EPISODES: Final = {
    # Nobody uses the topic while it is recreated, so processes hear nothing of that.
    "recreated unseen": (
        (0.0, "move", 0, 0.0),
        (0.3, "move", 1, 0.0),
        (0.3, "move", 0, 0.0),
        (0.6, "lull", 0, 1.5),
        (0.4, "recreate", 0, 0.0),
        (1.8, "move", 1, 0.0),
        (0.4, "move", 0, 0.0),
        (0.4, "move", 1, 0.0),
    ),
    # The same with a single move: the recreated topic comes to the same epoch.
    "recreated to the same epoch": (
        (0.0, "move", 0, 0.0),
        (0.6, "lull", 0, 1.0),
        (0.4, "recreate", 0, 0.0),
        (1.2, "move", 1, 0.0),
        (0.3, "move", 0, 0.0),
    ),
    # A broker that leads nothing is not listed, and its process knows nothing of it.
    "started while fenced": (
        (0.0, "fence", 0, 3.0),
        (0.3, "process", 0, 0.0),
    ),
    # The same, where another one leads nothing.
    "fenced after a restart": (
        (0.0, "restart", 1, 0.2),
        (1.8, "fence", 0, 3.0),
        (0.3, "process", 0, 0.0),
    ),
    "twice restarted": (
        (0.0, "restart", 0, 0.2),
        (2.0, "process", 0, 0.0),
        (0.1, "restart", 0, 0.2),
    ),
    # A leadership leaves a broker and comes back while its clients are away.
    "there and back": (
        (0.0, "move", 0, 0.0),
        (0.4, "lull", 0, 1.5),
        (0.2, "move", 1, 0.0),
        (0.2, "move", 0, 0.0),
        (1.4, "move", 1, 0.0),
    ),
    # Clients learn of moves elsewhere: one process has not learnt of them.
    "a broker lags": (
        (0.0, "stale", 0, 3.0),
        (0.1, "move", 1, 0.0),
        (0.5, "move", 0, 0.0),
        (0.5, "recreate", 0, 0.0),
        (0.7, "move", 1, 0.0),
        (0.3, "move", 0, 0.0),
    ),
    # What a reassignment does: the epoch rises under the same leader, and then with the next one.
    "reassigned": (
        (0.0, "rise", 0, 0.0),
        (0.01, "move", 0, 0.0),
        (0.3, "rise", 0, 0.0),
        (0.01, "rise", 0, 0.0),
        (0.01, "move", 1, 0.0),
    ),
}


def happenings(seed: int) -> list[Happening]:
    """Draw what happens, in the order of its times."""
    draw = random.Random(f"{seed} happenings")
    drawn: list[Happening] = []
    at = PEACE
    if draw.random() < 0.8:
        at = _episode(draw, drawn)
    while True:
        at += draw.choice(_GAPS) * (0.5 + draw.random())
        if at > UNTIL:
            more = (drawn_by(seed) for drawn_by in _MORE)
            return sorted([*drawn, *chain.from_iterable(more)])
        (kind,) = draw.choices([*_WEIGHTS], [*_WEIGHTS.values()])
        drawn.append(
            Happening(
                round(at, 4),
                kind,
                number=draw.randint(0, 3),
                node=draw.choice(NODES),
                seconds=draw.choice([0.2, 0.6, 1.5, 3.0]),
            )
        )


def _upgrades(seed: int) -> Iterator[Happening]:
    """Draw which brokers are upgraded, one after the other: all of them, in most worlds."""
    draw = random.Random(f"{seed} upgrades")
    if not profile(seed).later:
        return
    at = PEACE + draw.random()
    for node in draw.sample(NODES, k=draw.choice([1, 2, 3, 3, 3, 3])):
        yield Happening(round(at, 4), "upgrade", draw.randint(0, 3), node, 0.2)
        at += 1.2 + 1.2 * draw.random()


def _evictions(seed: int) -> Iterator[Happening]:
    """Draw when which broker forgets its fetch sessions, in some worlds."""
    draw = random.Random(f"{seed} evictions")
    for _ in range(draw.choice([0, 0, 0, 3, 6])):
        at = draw.uniform(PEACE, UNTIL)
        yield Happening(round(at, 4), "evict", node=draw.choice(NODES))


def _losses(seed: int) -> Iterator[Happening]:
    """Draw when a broker is lost that alone is in sync, in some worlds."""
    draw = random.Random(f"{seed} losses")
    if draw.random() < 0.25:
        at, seconds = draw.uniform(PEACE, UNTIL), draw.choice([0.2, 0.6, 1.5])
        yield Happening(round(at, 4), "lose", draw.randint(0, 3), draw.choice(NODES), seconds)


def _swaps(seed: int) -> Iterator[Happening]:
    """Draw when two brokers change their addresses, in some worlds."""
    draw = random.Random(f"{seed} swaps")
    if draw.random() < 0.08 and not profile(seed).crossed:
        at, seconds = draw.uniform(PEACE, UNTIL - 2.0), draw.choice([0.2, 0.6, 1.5])
        yield Happening(round(at, 4), "swap", draw.randint(0, 3), draw.choice(NODES), seconds)


def _worker_ends(seed: int) -> Iterator[Happening]:
    """Draw when workers end, of the process that has the route of a node, and begin again."""
    draw = random.Random(f"{seed} worker ends")
    if WORKERS_END_FROM <= seed < RACKS_FROM:
        for _ in range(draw.choice([1, 2, 4])):
            yield _to_a_worker(draw, "worker", [0.1, 0.3, 1.5])


def _worker_stops(seed: int) -> Iterator[Happening]:
    """Draw when workers do nothing for a while: mostly while leaders move, and move again."""
    draw = random.Random(f"{seed} worker stops")
    if WORKERS_STOP_FROM <= seed < RACKS_FROM:
        for _ in range(draw.choice([1, 2, 4])):
            stop = _to_a_worker(draw, "stop", [0.05, 0.7, 1.5])
            yield stop
            for after in (0.01, draw.choice([0.1, 0.5])) if draw.random() < 0.7 else ():
                yield Happening(round(stop.at + after, 4), "storm", 0, draw.choice(NODES))


def _to_a_worker(draw: random.Random, kind: str, lasts: Sequence[float]) -> Happening:
    """Draw when it happens to a worker, to which one, and for how many of these seconds."""
    at, seconds = draw.uniform(PEACE, UNTIL), draw.choice(lasts)
    node, number = draw.choice(NODES), draw.randint(0, 1)
    return Happening(round(at, 4), kind, number, node, seconds)


def _reassignments(seed: int) -> Iterator[Happening]:
    """Draw which replicas go, and when: mostly while no client is there, so that a process that is
    not polling hears nothing of that until the next poll.
    """
    draw = random.Random(f"{seed} reassignments")
    if seed < REASSIGNED_FROM or not profile(seed).racks:
        return
    for _ in range(draw.choice([1, 2, 3])):
        # Mostly before elections: none is named for a while after one.
        at = draw.triangular(PEACE, UNTIL - 2.0, PEACE)
        if draw.random() < 0.8:
            # By then each Fetch that waits was answered: with an error it would show it.
            gap = LONG_POLL + 0.1
            yield Happening(round(at, 4), "absence", seconds=gap + draw.choice([0.0, 0.1, 0.5]))
            at += gap
        yield Happening(round(at, 4), "reassign", draw.randint(0, 11), draw.choice(NODES))


#: What is drawn apart from all else, so that what was drawn before stays as it is.
_MORE: Final = (
    *(_upgrades, _evictions, _losses, _swaps),
    *(_worker_ends, _worker_stops, _reassignments),
)


def _episode(draw: random.Random, drawn: list[Happening]) -> float:
    """Add an episode; return from when on other things happen: now and then at the same time."""
    at, number = PEACE, draw.randint(0, 3)
    nodes = draw.sample(NODES, k=2)
    for gap, kind, which, seconds in _EPISODES[draw.choice([*_EPISODES])]:
        at += gap * (0.5 + draw.random())
        drawn.append(Happening(round(at, 4), kind, number, nodes[which], seconds))
    return PEACE if draw.random() < 0.3 else at
