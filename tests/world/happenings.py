"""What befalls a world: drawn from its seed as a list, of which any part can be left out."""

import random
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.world.clients import KINDS
from tests.world.model.releases import FETCH, PRODUCE, RELEASES

NODES: Final = (1, 2, 3)
#: The topic to which things happen, and the one to which none do but elections.
BUSY, CALM = "busy", "calm"
#: Seconds: of peace at first, and until the last happening.
PEACE = 3.0
UNTIL = 11.0


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
    ``hidden``: the proxy's principal may not see the calm topic.
    """

    kraft: bool
    ids: bool
    releases: tuple[str, ...]
    lag: float
    latency: float
    fronted: tuple[int, ...]
    clients: tuple[tuple[str, int], ...]
    partitions: int

    def __str__(self) -> str:
        mode = "KRaft" if self.kraft else "ZooKeeper"
        return (
            f"{mode}, brokers {', '.join(self.releases)}, {'with' if self.ids else 'no'} topic "
            f"ids, lag up to {self.lag:g} s, proxied: {', '.join(map(str, self.fronted))}"
        )


def profile(seed: int) -> Profile:
    """Draw what a world is like."""
    draw = random.Random(f"{seed} profile")
    kraft = draw.random() < 0.4
    names = [*RELEASES]
    first = names.index("3.3") if kraft else 0
    oldest = draw.randrange(first, len(names))
    mixed = draw.random() < 0.3
    releases = tuple(
        names[draw.randint(oldest, min(oldest + 1, len(names) - 1)) if mixed else oldest]
        for _ in NODES
    )
    with_ids = all(RELEASES[name].ids for name in releases)
    return Profile(
        kraft=kraft,
        ids=with_ids and (kraft or draw.random() < 0.6),
        releases=releases,
        lag=draw.choice([0.0, 0.02, 0.3, 1.0]),
        latency=draw.choice([0.0002, 0.002]),
        fronted=draw.choice([(1,), (1, 2), (1, 2, 3), (1, 2, 3)]),
        clients=tuple(
            (kind, draw.choice([PRODUCE, FETCH])) for kind in draw.sample(sorted(KINDS), k=4)
        ),
        partitions=draw.choice([1, 2, 3]),
    )


#: How often each kind of happening is drawn.
_WEIGHTS: Final = {
    "move": 8.0,
    "rise": 2.0,
    "recreate": 2.0,
    "grow": 0.5,
    "restart": 1.5,
    "reset": 1.0,
    "hang": 0.5,
    "storm": 1.0,
}
_GAPS: Final = (0.0, 0.005, 0.05, 0.2, 0.6, 1.5)


def happenings(seed: int) -> list[Happening]:
    """Draw what happens, in the order of its times."""
    draw = random.Random(f"{seed} happenings")
    drawn: list[Happening] = []
    at = PEACE
    while True:
        at += draw.choice(_GAPS) * (0.5 + draw.random())
        if at > UNTIL:
            return drawn
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
