"""The options that the commands of the matrix and of the runs have in common."""

import argparse

from tests.matrix.brokers import BROKERS


def common_parser(module: str, description: str | None, moves: int) -> argparse.ArgumentParser:
    """Return a parser that has them; ``moves``: how often leaders move by default."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    made.add_argument(
        "--broker", action="append", choices=BROKERS, help="only this one; may be repeated"
    )
    made.add_argument("--moves", type=int, default=moves, help="moves of leaders in each")
    made.add_argument("--logs", help="a new folder for logs; by default a temporary one")
    made.add_argument("--page-only", action="store_true", help="run nothing, write the page")
    return made
