"""The command `python -m demo`. It ends with 0 if the demo passed, 1 if not, 130 on Ctrl-C."""

import argparse
import sys

from demo.faults import find_faults
from demo.proxy_process import ProxyFailedError
from demo.screen import Screen
from demo.stage import METADATA_LAG_SECONDS, open_stage, play_round
from demo.summary import summarize
from demo.traffic import TrafficError
from leader_hints.mock.cluster import MockClusterError

_ROUNDS = (False, True, False, True)  # Hints on, or not. They alternate, to share a slow moment.
_MOVES = 9


def main() -> int:
    """Play all rounds and judge them; return the exit code."""
    options = _parse_options()
    screen = Screen(options.plain)
    screen.introduce(METADATA_LAG_SECONDS * 1000)
    reports = []
    try:
        for number, hints_on in enumerate(_ROUNDS, start=1):
            with screen.round(number, len(_ROUNDS), hints_on), open_stage(hints_on) as stage:
                reports.append(play_round(stage, stage.bootstrap, options.moves, screen.move))
    except (MockClusterError, ProxyFailedError, TrafficError) as error:
        screen.failed([str(error)])
        return 1
    except KeyboardInterrupt:
        return 130
    screen.summarize(summarize(reports))
    faults = find_faults(reports)
    if faults:
        screen.failed(faults)
        return 1
    screen.passed()
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo", description="Leader moves with hints off and on, without Kafka."
    )
    parser.add_argument(
        "--moves", type=_positive, default=_MOVES, metavar="N", help="moves in each round"
    )
    parser.add_argument("--plain", action="store_true", help="plain lines, also on a terminal")
    return parser.parse_args()


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
