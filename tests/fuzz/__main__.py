"""Send mutated requests and responses through links; end with 1 at the first broken rule."""

import argparse
import os
import resource
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.answers import Answers
from tests.fuzz.case import Case, play
from tests.fuzz.make import Maker
from tests.fuzz.referee import judge
from tests.fuzz.shrink import shrink
from tests.recordings import recorded_exchanges

_FINDINGS = Path(__file__).resolve().parents[2] / "build" / "fuzz"
#: Cases of links for each of the proxy's own answers.
_EACH = 10
_TELL_S = 10.0
#: Address space beyond what is used at the beginning. A frame that claims a gigabyte must not
#: get it; all that cases send and links keep is a few megabytes.
_ROOM_BYTES = 256 << 20


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
    if options.replay is not None:
        judged = Case.load(options.replay)
        judge(judged, play(judged))
        print("no rule is broken")
        return 0
    maker, answers = Maker(options.seed, recorded_exchanges()), Answers(options.seed)
    _bound_memory()
    print(f"seed {options.seed}", flush=True)
    began = told = time.monotonic()
    messages = number = 0
    while messages < options.messages and time.monotonic() - began < options.seconds:
        case, size = maker.case(number)
        try:
            judge(case, play(case))
        except Exception as error:
            _found(options.seed, number, case, error)
            return 1
        messages += size
        if number % _EACH == 0:
            messages += answers.read(number)
        number += 1
        if time.monotonic() - told > _TELL_S:
            told = time.monotonic()
            print(f"{messages} messages, {number} cases, {told - began:.0f} s", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{messages} messages in {number} cases, {time.monotonic() - began:.1f} s, seed "
        f"{options.seed}: no rule broken; {peak} MiB at most"
    )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--messages", type=int, default=1 << 62, help="end after so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--replay", type=Path, help="judge the case in a file, and no other")
    return parser.parse_args()


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * os.sysconf("SC_PAGE_SIZE") + _ROOM_BYTES
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))


def _found(seed: int, number: int, case: Case, error: Exception) -> None:
    """Tell what is wrong, and write down the smallest case that shows it."""
    traceback.print_exception(error)
    print(f"found with --seed {seed}, case {number}", file=sys.stderr)
    small = shrink(case, lambda other: _raises(other, type(error)))
    file = _FINDINGS / f"{seed}-{number}.json"
    small.save(file)
    for side, data in small.steps:
        print(f"{side} {data.hex()}", file=sys.stderr)
    print(f"python -m tests.fuzz --replay {file}", file=sys.stderr)


def _raises(case: Case, kind: type[BaseException]) -> bool:
    try:
        judge(case, play(case))
    except kind:
        return True
    except Exception:
        return False
    return False


if __name__ == "__main__":
    sys.exit(main())
