"""Do faults to real brokers, with proxies and without.

It ends with 1 where a record is lost with proxies, and where the brokers fail to play their part.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.chaos.arm import Result, run
from tests.chaos.faults import FAULTS
from tests.matrix.brokers import BROKERS


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
    # All proxies get it, and no broker or client.
    os.environ["LEADER_HINTS_WORKERS"] = str(options.workers)
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-chaos-"))
    print(f"seed {options.seed}", flush=True)
    arms = (True, False) if options.baseline else (True,)
    seconds = options.seconds / len(arms)
    results = [
        run(
            options.broker,
            folder / ("with" if proxied else "without"),
            proxied=proxied,
            seconds=seconds,
            seed=options.seed,
        )
        for proxied in arms
    ]
    print("\n".join(_report(results)))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if results[0].violation or results[0].broken:
        print(f"logs: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="of faults, in all arms")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--broker", choices=sorted(BROKERS), default="3.6.2-zk")
    parser.add_argument(
        "--no-baseline", dest="baseline", action="store_false", help="only with proxies"
    )
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--workers", type=int, default=1, help="of each proxy")
    return parser.parse_args()


def _report(results: Sequence[Result]) -> list[str]:
    heads = " | ".join(f"{_arm(result)}: times, median s, max s" for result in results)
    lines = [f"| fault | {heads} |", "|---|" + "---|" * len(results)]
    for name in FAULTS:
        times = " | ".join(_times(result.recoveries.get(name)) for result in results)
        lines += [f"| {name} | {times} |"]
    for result in results:
        lines += [
            f"{_arm(result)}: {result.records} acknowledged records checked, "
            f"{result.hints:.0f} hints, {result.journal_dropped:.0f} journal events dropped, "
            f"{result.seconds:.0f} s: {_verdict(result)}"
        ]
    return lines


def _verdict(result: Result) -> str:
    if result.broken:
        return f"not judged to its end, the brokers failed it: {result.broken}"
    return result.violation or "none lost, doubled or out of order"


def _arm(result: Result) -> str:
    return "with proxies" if result.proxied else "without"


def _times(times: Sequence[float] | None) -> str:
    if not times:
        return "-"
    return f"{len(times)}, {statistics.median(times):.2f}, {max(times):.2f}"


if __name__ == "__main__":
    sys.exit(main())
