"""The command ``python -m tests.world``: lives worlds from new seeds, and explains what fails."""

import argparse
import itertools
import sys

from tests.world.run import live
from tests.world.shrink import shrink
from tests.world.timeline import timeline


def main() -> int:
    """Live worlds; return 1 if one of them broke a rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="how many worlds; 0: until stopped")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--keep-on", action="store_true", help="go on after a failure")
    parser.add_argument("--brief", action="store_true", help="print only which rule broke")
    given = parser.parse_args()
    seeds = (
        range(given.first, given.first + given.seeds)
        if given.seeds
        else itertools.count(given.first)
    )
    failed = 0
    lived = 0
    for seed in seeds:
        life = live(seed)
        lived += 1
        if life.broken:
            failed += 1
            lines = (
                [f"seed {seed}: {life.broken[0].rule}"] if given.brief else timeline(shrink(life))
            )
            print("\n".join(lines), flush=True)
            if not given.keep_on:
                break
        elif lived % 100 == 0:
            print(f"{lived} worlds lived, the last with seed {seed}", flush=True)
    print(f"{lived} worlds lived, the last with seed {seed}", flush=True)
    print(f"{lived} worlds lived, {failed} of them broke a rule")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
