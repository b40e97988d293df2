"""The command ``python -m tests.mutants``: finds out whether tests and worlds find each mutant."""

import argparse
import sys

from tests.mutants.judging import judge
from tests.mutants.results import Results
from tests.mutants.table import MUTANTS


def main() -> int:
    """Judge mutants that have no verdict yet, and print the table; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; none: all")
    parser.add_argument("--seeds", type=int, default=300, help="worlds of each mutant, at most")
    parser.add_argument("--again", action="store_true", help="judge again what has a verdict")
    parser.add_argument("--table", action="store_true", help="judge nothing, print what is known")
    parser.add_argument("--fixes", action="store_true", help="of fixed defects that are back alone")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in MUTANTS]
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}")
    chosen = [MUTANTS[name] for name in given.names or MUTANTS]
    mutants = [mutant for mutant in chosen if mutant.fix or not given.fixes]
    results = Results()
    for mutant in () if given.table else mutants:
        if given.again or results.get(mutant) is None:
            verdict = judge(mutant, given.seeds)
            results.put(mutant, verdict)
            by = verdict.by or "nothing"
            print(f"{mutant.name}: {by}, {verdict.worlds} worlds", file=sys.stderr, flush=True)
    print("\n".join(results.fixes(mutants) if given.fixes else results.table(mutants)))
    verdicts = [(mutant, results.get(mutant)) for mutant in mutants]
    missed = [m for m, verdict in verdicts if not (m.equivalent or (verdict and verdict.by))]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
