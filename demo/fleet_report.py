"""The command `python -m demo.fleet_report`: from leader moves to the page of the report.

It ends with 0 if the page is there, 1 if not, 130 on Ctrl-C.
"""

import argparse
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from demo.fleet import open_fleet
from demo.proxy_process import ProxyFailedError
from demo.traffic import TrafficError
from leader_hints.mock.cluster import MockClusterError

_ROUNDS = ("observe", "on")
_MOVES = 30
#: For a few thousand events nothing is worth being split or compiled: that is most of the time.
_SMALL = (
    "spark.sql.shuffle.partitions=2",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
_FOLDER = Path(__file__).resolve().parent.parent / "build" / "demo-report"


def main() -> int:
    """Play both rounds, make the tables and the page; return the exit code."""
    options = _parse_options()
    console = Console(highlight=False)
    if shutil.which("java") is None:
        console.print("FAILED: no java. The pipeline runs on Spark, which needs Java 17.")
        return 1
    shutil.rmtree(options.folder, ignore_errors=True)
    journal = options.folder / "journal"
    journal.mkdir(parents=True)
    try:
        _play(console, journal, options.moves)
        page = _report(console, options.folder)
    except (MockClusterError, ProxyFailedError, TrafficError) as error:
        console.print(f"FAILED: {error}", markup=False)
        return 1
    except subprocess.CalledProcessError as error:
        console.print(f"FAILED: {' '.join(error.cmd)} ended with {error.returncode}", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130
    console.print(f"The report is {page}", soft_wrap=True, markup=False)
    return 0


def _play(console: Console, journal: Path, moves: int) -> None:
    console.print("A mock cluster of three brokers, a sidecar with a journal before each.")
    with open_fleet() as fleet, Progress(console=console) as progress:
        for hints in _ROUNDS:
            task = progress.add_task(f"Leader moves, hints: {hints}", total=moves)
            fleet.play(hints, journal, moves, partial(progress.advance, task))


def _report(console: Console, folder: Path) -> Path:
    tables, page = folder / "tables", folder / "report.html"
    for words, arguments in (
        ("Tables from the journals", ["batch", "--journal", folder / "journal", "--out", tables]),
        ("The page from the tables", ["html", "--tables", tables, "--out", page]),
    ):
        console.print(f"{words}, on Spark:")
        command = [sys.executable, "-m", "leader_hints_report.cli", *map(str, arguments)]
        for setting in _SMALL:
            command += ["--conf", setting]
        subprocess.run(command, check=True)
    return page


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo.fleet_report",
        description="Leader moves, hints only observed and then given; and the report of them.",
    )
    parser.add_argument("--moves", type=int, default=_MOVES, help="moves in each round")
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="is emptied first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
