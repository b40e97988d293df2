"""``python -m tests.runs``: do runs, keep their results, write docs/compatibility.md."""

import argparse
import contextlib
import itertools
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.harness import maven
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.harness.java import java_clients
from tests.harness.waiting import patience
from tests.matrix import page
from tests.matrix.brokers import BROKERS
from tests.matrix.options import common_parser
from tests.matrix.roster import newest
from tests.runs.place import Figures, Place
from tests.runs.results import Result
from tests.runs.roster import RUNS, TARGET, Run

_MOVES = 5
_FAILURE_LENGTH = 300
#: Two clusters may start on a small machine.
_STARTS_S = 240.0


def main() -> int:
    """Do what the options choose; returns 1 if a run failed or could not be done."""
    options = _parse(sys.argv[1:])
    failed = False
    if not options.page_only:
        folder = Path(options.logs or tempfile.mkdtemp(prefix="leader-hints-runs-"))
        print(f"logs are in {folder}", flush=True)
        wanted = [RUNS[name] for name in options.run or RUNS]
        able = [run for run in wanted if _able(run)]
        failed = len(able) < len(wanted)
        for broker in options.broker or BROKERS:
            chosen = [run for run in able if broker in run.brokers]
            failed = _do_all(broker, chosen, folder / broker, options.moves) or failed
    page.write()
    print(f"wrote {page.FILE.relative_to(maven.ROOT)}")
    return 1 if failed else 0


def _able(run: Run) -> bool:
    missing = run.missing()
    if missing is not None:
        print(f"skipped {run.name}: {missing}", file=sys.stderr)
    return missing is None


def _do_all(broker: str, runs: Sequence[Run], folder: Path, moves: int) -> bool:
    """Do runs on one cluster; return whether one failed."""
    if not runs:
        return False
    failed = False
    with contextlib.ExitStack() as stack:
        target: RealCluster | None = None
        with patience(_STARTS_S):
            cluster = stack.enter_context(BROKERS[broker].cluster(folder / "cluster"))
            if any(run.target for run in runs):
                target = stack.enter_context(BROKERS[TARGET].cluster(folder / "target"))
        java = stack.enter_context(contextlib.closing(_Java(folder)))
        for run, direct in ((one, way) for one in runs for way in one.ways):
            logs = folder / f"{run.name}{'-direct' if direct else ''}"
            logs.mkdir(parents=True)
            place = Place(cluster, logs, java.process, direct, moves)
            others = [Place(target, logs / "target", java.process)] if target and run.target else []
            result = _do(run, broker, place, others)
            result.save()
            what = result.failure or dict(result.figures)
            print(f"{broker} {logs.name}: {what}, {result.seconds:g} s", flush=True)
            failed = failed or bool(result.failure)
            java.clear()
            cluster.check()
    return failed


class _Java:
    """Java's clients, in a process that is started when they are needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = itertools.count(1)
        self._process: ClientProcess | None = None

    def process(self) -> ClientProcess:
        if self._process is None:
            folder = self._folder / f"java-{next(self._starts)}"
            self._process = java_clients(folder, newest("java").version)
        return self._process

    def clear(self) -> None:
        """End the process if a run that failed has left clients in it."""
        if self._process is not None and self._process.busy:
            self.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


def _do(run: Run, broker: str, place: Place, others: Sequence[Place]) -> Result:
    began = time.monotonic()
    figures: Figures = {}
    failure = ""
    try:
        figures = run.do(place, *others)
    except (AssertionError, OSError) as error:
        traceback.print_exc()
        # What follows are lines of logs.
        failure = (str(error) or repr(error)).splitlines()[0][:_FAILURE_LENGTH]
    seconds = round(time.monotonic() - began, 1)
    return Result(run.name, broker, place.direct, place.moves, figures, failure, seconds)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = common_parser("tests.runs", __doc__, _MOVES)
    parser.add_argument("--run", action="append", choices=RUNS, help="only this; may be repeated")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
