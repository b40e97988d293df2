"""The command ``python -m tests.world``: lives worlds from new seeds, and explains what fails."""

import argparse
import sys
from contextlib import closing

from tests.world.run import live
from tests.world.shrink import shrink
from tests.world.timeline import timeline
from tests.world.workers import lived

#: Seeds up to here are as good as without end.
_ENDLESS = 1 << 62


def main() -> int:
    """Live worlds; return 1 if one of them broke a rule, 130 if they were stopped before."""
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="how many worlds; 0: until stopped")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes that live worlds")
    parser.add_argument("--keep-on", action="store_true", help="go on after a failure")
    parser.add_argument("--brief", action="store_true", help="print only which rule broke")
    given = parser.parse_args()
    seeds = range(given.first, given.first + (given.seeds or _ENDLESS))
    worlds = failed = 0
    stopped = False
    with closing(lived(seeds, max(given.workers, 1))) as lives:
        try:
            for worlds, (seed, rule) in enumerate(lives, 1):
                if rule:
                    failed += 1
                    _explain(seed, rule, brief=given.brief)
                    if not given.keep_on:
                        break
                elif worlds % 100 == 0:
                    print(f"{worlds} worlds lived, the last with seed {seed}", flush=True)
        except KeyboardInterrupt:
            stopped = True
    print(f"{worlds} worlds lived from seed {given.first} on, {failed} of them broke a rule")
    return 1 if failed else 130 if stopped else 0


def _explain(seed: int, rule: str, *, brief: bool) -> None:
    # It is lived again: by its seed a world is the same in each process.
    lines = [f"seed {seed}: {rule}"] if brief else timeline(shrink(live(seed)))
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
