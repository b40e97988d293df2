"""The part of docs/compatibility.md that is made of the runs' results."""

from collections.abc import Iterator, Mapping, Sequence

from tests.runs import results
from tests.runs.results import Result
from tests.runs.roster import RUNS, Run

COMMAND = "python -m tests.runs"
NOT_RUN = "not run"

Found = Mapping[str, Sequence[Result]]
"""The results of runs by their names."""


def collect() -> Found:
    """All results of runs that are there."""
    return {name: results.load(name) for name in RUNS}


def render(found: Found) -> str:
    """The part, with a heading."""
    lines = [
        "| run | broker | way | counts | moves |",
        "| --- | --- | --- | --- | --- |",
        *(line for run in RUNS.values() for line in _lines(run, found.get(run.name, ()))),
    ]
    return "\n\n".join(
        (
            "## Programs, networks and other clients",
            f"What users run besides, done by `{COMMAND}` while all leaders move, `moves` times; "
            "some are tests too (`tests/real/test_runs.py`). Each of three brokers has a proxy in "
            "front of it (`through`), or clients go to the brokers (`direct`). `errors`: failed "
            "partitions that clients got; `hints`: how many of these with a hint of the proxy.",
            "\n".join(lines),
            "What was checked:",
            "\n".join(f"- {', '.join(titles)}: {checked}." for checked, titles in _checked()),
        )
    )


def _checked() -> Iterator[tuple[str, Sequence[str]]]:
    """Iterate over what is checked, with the titles of the runs that do so."""
    titles: dict[str, list[str]] = {}
    for run in RUNS.values():
        titles.setdefault(run.checked, []).append(f"**{run.title}**")
    yield from titles.items()


def _lines(run: Run, found: Sequence[Result]) -> Iterator[str]:
    by_place = {(one.broker, one.direct): one for one in found}
    for broker in run.brokers:
        for direct in run.ways:
            one = by_place.get((broker, direct))
            cells = (NOT_RUN, "") if one is None else (_outcome(one), str(one.moves))
            way = "direct" if direct else "through"
            yield f"| {' | '.join((run.title, broker, way, *cells))} |"


def _outcome(result: Result) -> str:
    if result.failure:
        return "**failed**: `" + " ".join(result.failure.replace("`", "'").split()) + "`"
    return ", ".join(f"{name} {count}" for name, count in result.figures.items())
