"""Makes a case that breaks a rule as small as it goes."""

from collections.abc import Callable

from tests.fuzz.case import Case, Step

_MOST_TRIES = 3000


def shrink(case: Case, breaks: Callable[[Case], bool]) -> Case:
    """Return a case that breaks too, with fewer steps and bytes."""
    tries = 0

    def still(steps: list[Step]) -> bool:
        nonlocal tries
        tries += 1
        return tries < _MOST_TRIES and breaks(case.with_steps(steps))

    steps = _joined(list(case.steps))
    if not still(steps):
        steps = list(case.steps)
    size = sum(len(data) for _, data in steps)
    while size:
        for at in range(len(steps) - 1, -1, -1):
            fewer = steps[:at] + steps[at + 1 :]
            if still(fewer):
                steps = fewer
        for at, (side, data) in enumerate(steps):
            end = len(data)
            while end > 0:
                shorter = data[: max(end - size, 0)] + data[end:]
                if shorter and still([*steps[:at], (side, shorter), *steps[at + 1 :]]):
                    data = shorter
                    steps[at] = (side, data)
                end -= size
        size //= 2
    return case.with_steps(steps)


def _joined(steps: list[Step]) -> list[Step]:
    """Join chunks that follow one another on one side."""
    joined: list[Step] = []
    for side, data in steps:
        if joined and joined[-1][0] == side:
            joined[-1] = (side, joined[-1][1] + data)
        else:
            joined.append((side, data))
    return joined
