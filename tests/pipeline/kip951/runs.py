"""Runs to compare."""

from leader_hints_report.kip951.run_figures import COLUMNS, RunFigures


def make_run(arm: str, run: int, figure: float) -> RunFigures:
    """A run all of whose figures are ``figure``."""
    return RunFigures(arm=arm, run=run, records=10, failed=0, **dict.fromkeys(COLUMNS, figure))
