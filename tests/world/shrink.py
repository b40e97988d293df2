"""Makes a failing world smaller: fewer happenings that still break the same rule."""

from collections.abc import Sequence

from tests.world.happenings import Happening
from tests.world.run import Life, live

#: Worlds that are lived to find a smaller one.
_MOST = 200


def shrink(life: Life) -> Life:
    """Return the smallest world found in which the first rule that broke breaks as well."""
    rule = life.broken[0].rule
    lives = 0
    size = max(len(life.happenings) // 2, 1)
    while lives < _MOST:
        smaller = None
        for begin in range(0, len(life.happenings), size):
            lives += 1
            tried = live(life.seed, _without(life.happenings, begin, size))
            if any(broken.rule == rule for broken in tried.broken):
                smaller = tried
                break
        if smaller is not None:
            life = smaller
            size = max(min(size, len(life.happenings)), 1)
        elif size > 1:
            size //= 2
        else:
            break
        if not life.happenings:
            break
    return life


def _without(happenings: Sequence[Happening], begin: int, size: int) -> list[Happening]:
    return [*happenings[:begin], *happenings[begin + size :]]
