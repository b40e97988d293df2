"""The page says what came of each run at each place."""

from tests.matrix.brokers import BROKERS
from tests.runs import page
from tests.runs.results import Result
from tests.runs.roster import RUNS

_RUN = next(iter(RUNS.values()))


def _result(failure: str = "") -> Result:
    figures = {} if failure else {"records": 9, "hints": 4}
    return Result(_RUN.name, _RUN.brokers[0], _RUN.ways[0], 5, figures, failure, 1.0)


def test_each_run_is_done_on_brokers_that_there_are() -> None:
    assert all(broker in BROKERS for run in RUNS.values() for broker in run.brokers)


def test_what_never_ran_is_reported() -> None:
    lines = page.render({}).count(f"| {page.NOT_RUN} |")
    assert lines == sum(len(run.brokers) * len(run.ways) for run in RUNS.values())


def test_figures_and_failures_stand_in_the_page() -> None:
    assert "| records 9, hints 4 | 5 |" in page.render({_RUN.name: [_result()]})
    text = page.render({_RUN.name: [_result("lost `5`\nrecords")]})
    assert "| **failed**: `lost '5' records` | 5 |" in text


def test_all_that_is_checked_is_said() -> None:
    text = page.render({})
    said = text.partition("What was checked:")[2]
    assert all(f"**{run.title}**" in said and f": {run.checked}." in said for run in RUNS.values())
    assert said.count("\n- ") == len({run.checked for run in RUNS.values()})
