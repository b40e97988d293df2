"""Makes cases from seeds."""

import random
from collections.abc import Sequence

from tests.fuzz.case import KINDS, Case, Side, Step
from tests.fuzz.mutate import chunks, mutated, shuffled
from tests.fuzz.seeds import Exchanged, by_kio, hello, numbered, written

#: Bytes that one side sends in a case at most: what is carried over fits into one buffer.
_MOST = 100_000
_BUDGETS = ((1 << 22, 1 << 26), (1 << 22, 1 << 26), (0, 0), (300, 700), (2000, 2500))


class Maker:
    """Makes the cases of one seed; each is the same whatever came before it."""

    def __init__(self, seed: int, recorded: Sequence[Exchanged]) -> None:
        self._seed = seed
        self._recorded = recorded
        self._exchanges: dict[str, list[Sequence[Exchanged]]] = {}
        self._kinds = list(KINDS)
        # Those on which the most is read.
        read = {"2.4", "2.6", "2.8", "3.4", "3.6", "2.6+", "2.8+"}
        self._weights = [4 if kind in read else 1 for kind in KINDS]

    def case(self, number: int) -> tuple[Case, int]:
        """Return a case, and of how many messages it is."""
        chance = random.Random(self._seed << 40 | number)
        (kind,) = chance.choices(self._kinds, self._weights)
        known = chance.choice(self._known(kind))
        talk = [hello(kind, chance)] if chance.random() < 0.7 else []
        talk += chance.choices(known, k=chance.choice((1, 2, 3, 5, 8)))
        talk = [numbered(exchanged, n) for n, exchanged in enumerate(talk, 1)]
        asked, answered = self._mutated(talk, known, chance)
        per_link, total = chance.choice(_BUDGETS)
        case = Case(
            kind=kind,
            seed=chance.randrange(1 << 30),
            hold_queue=chance.random() < 0.3,
            per_link=per_link,
            total=total,
            steps=_steps(asked, answered, chance),
        )
        return case, len(asked) + len(answered)

    def _known(self, kind: str) -> list[Sequence[Exchanged]]:
        """Return what cases of a kind are made of, which takes a second to make.

        Each kind of seed is taken as often as any other, however many there are of it.
        """
        if kind not in self._exchanges:
            made = (written(kind), by_kio(kind, random.Random(self._seed)), self._recorded)
            self._exchanges[kind] = [seeds for seeds in made if seeds]
        return self._exchanges[kind]

    def _mutated(
        self, talk: list[Exchanged], known: Sequence[Exchanged], chance: random.Random
    ) -> tuple[list[bytes], list[bytes]]:
        asked = [exchanged.asked for exchanged in talk]
        answered = [exchanged.answered for exchanged in talk if exchanged.answered]
        others = [part for exchanged in chance.choices(known, k=2) for part in exchanged if part]
        # One that lies hides all behind it: mostly there is but one.
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            side = asked if chance.random() < 0.4 or not answered else answered
            # The last ones: what comes before is understood.
            at = len(side) - 1 - min(chance.choice((0, 0, 1, 3)), len(side) - 1)
            side[at] = mutated(side[at], others, chance)
        if chance.random() < 0.3:
            asked, answered = shuffled(asked, chance), shuffled(answered, chance)
        return asked, answered


def _steps(asked: Sequence[bytes], answered: Sequence[bytes], chance: random.Random) -> list[Step]:
    """Let responses come behind their requests, most often; streams may end anywhere."""
    steps: list[Step] = []
    ups, downs = list(asked), list(answered)
    if chance.random() < 0.4:
        # All requests at once, then all responses.
        ups, downs = [b"".join(ups)], [b"".join(downs)]
    if chance.random() < 0.05:
        ups, downs = downs, ups
    sent: dict[Side, int] = {"up": 0, "down": 0}
    side: Side
    unasked = chance.random() < 0.05
    while ups or downs:
        if (
            ups
            and (not downs or len(downs) <= len(ups) or chance.random() < 0.3)
            and not (unasked and downs)
        ):
            side, data = "up", ups.pop(0)
        elif downs:
            side, data = "down", downs.pop(0)
        else:
            continue
        data = data[: _MOST - sent[side]]
        sent[side] += len(data)
        steps += [(side, chunk) for chunk in chunks(data, chance)]
    if steps and chance.random() < 0.1:
        del steps[chance.randrange(len(steps)) :]
    return steps
