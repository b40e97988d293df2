"""`leader-hints-report simulate`: what a roll will cost, before it is done."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from leader_hints_report.errors import PipelineError
from leader_hints_report.progress import steps
from leader_hints_report.spark_session import begin, takes_conf

if TYPE_CHECKING:
    from leader_hints_report.simulation.arms import Arm
    from leader_hints_report.simulation.fleet import Fleet

_MODES: Final = ("no-proxy", "hints", "settled", "native", "no-backoff")
#: Errors that are judged by the proxy's own rules, too.
_SAMPLED: Final = 100
_LIMIT: Final = re.compile(r"p(\d{1,2}(?:\.\d+)?)=(\d+(?:\.\d+)?)")


@click.command("simulate")
@click.option(
    "--fleet",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The fleet and the event, as YAML; docs/simulation.md has examples.",
)
@click.option(
    "--journal",
    metavar="PATH|kafka://HOST:PORT/TOPIC",
    help="Take fleet and event from a journal in place of a file; needs Java 17.",
)
@click.option(
    "--assume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --journal: what it cannot tell, as YAML, such as the cluster's mode and an event.",
)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(_MODES),
    help="What to compare; may be given many times.  [default: all]",
)
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Each mode with this setting changed besides, such as pause_s=300. May be given many "
    "times.",
)
@click.option(
    "--seeds", default=5, show_default=True, type=click.IntRange(1, 10_000), help="How many."
)
@click.option(
    "--first-seed", default=1, show_default=True, type=click.IntRange(0), help="The first."
)
@click.option(
    "--pause-for",
    metavar="p99.9=MS",
    help="Search the shortest pause between brokers that keeps this percentile of the produce "
    "latency below so many milliseconds, in place of the figures.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write all figures there too.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write them as one HTML page with plots.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Simulate on Spark, such as local[*], one simulation a task.  [default: in this process]",
)
@takes_conf
def command(
    file: Path | None,
    journal: str | None,
    assume: Path | None,
    modes: tuple[str, ...],
    changes: tuple[str, ...],
    seeds: int,
    first_seed: int,
    pause_for: str | None,
    json_file: Path | None,
    page: Path | None,
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Simulate what an event costs the clients of a fleet, such as a rolling restart: with hints,
    without, and with changed settings."""
    if pause_for is not None and (json_file or page or (master and journal is None)):
        raise PipelineError("--pause-for prints a line for each arm: no --json, --page, --master")
    if conf and master is None and journal is None:
        raise PipelineError("--conf is for Spark: give it with --master or --journal")
    if json_file is not None and json_file == page:
        raise PipelineError(f"--json and --page are both {page}")
    # NumPy is imported only here.
    from leader_hints_report.simulation import sweep
    from leader_hints_report.simulation.arms import Mode, arms
    from leader_hints_report.simulation.document import Forecast, markdown

    fleet, notes = _taken(file, journal, assume, master, conf)
    chosen = arms(fleet, tuple(Mode(mode) for mode in modes or _MODES), changes)
    numbers = [*range(first_seed, first_seed + seeds)]
    if pause_for is not None:
        _search(pause_for, chosen, numbers)
        return
    with steps() as told:
        if master is None:
            figures = sweep.sweep(chosen, numbers, told)
        else:
            told(f"Simulating {len(chosen)} arms with {seeds} seeds on Spark")
            figures = sweep.sweep_on_spark(begin(master, conf), fleet, chosen, numbers)
    notes += _judged([arm for arm in chosen if arm.mode.has_proxy], first_seed)
    forecast = Forecast(version=1, fleet=fleet, seeds=numbers, arms=figures, notes=notes)
    click.echo(markdown(forecast))
    if json_file is not None:
        _write(json_file, forecast.model_dump_json(indent=2) + "\n")
    if page is not None:
        from leader_hints_report.simulation.page import render

        _write(page, render(forecast))


def _taken(
    file: Path | None,
    journal: str | None,
    assume: Path | None,
    master: str | None,
    conf: dict[str, str],
) -> "tuple[Fleet, list[str]]":
    """Return the fleet, and what is to be said of where it is from."""
    if assume is not None and journal is None:
        raise PipelineError("--assume is for what a journal cannot tell: give it with --journal")
    if file is not None and journal is None:
        from leader_hints_report.simulation.fleet import read_fleet

        return read_fleet(file), []
    if journal is None or file is not None:
        raise PipelineError("give either --fleet or --journal")
    from leader_hints_report.journal.sources import packages
    from leader_hints_report.simulation.journal.assumed import read_assumptions
    from leader_hints_report.simulation.journal.from_journal import read_journal

    # Reading the journal takes long, so mistakes in this are reported first.
    assumed = read_assumptions(assume)
    session = begin(master or "local[*]", conf, packages(journal))
    with steps() as told, TemporaryDirectory(prefix="leader-hints-simulate-") as folder:
        told("Reading the journal")
        fleet, notes = read_journal(session, journal, folder, assumed)
    return fleet, notes


def _judged(proxied: "list[Arm]", seed: int) -> list[str]:
    """Hold the model's holds against the proxy's own rules, with each change, and say how far they
    are apart."""
    from leader_hints_report.simulation.core_rules import compare

    modes = {arm.mode for arm in proxied}
    fleets = {arm.change: arm.fleet for arm in proxied}.values()
    compared = [of for fleet in fleets for of in compare(fleet, seed, _SAMPLED, modes) if of.holds]
    if not compared:
        return []
    each = []
    for kind in dict.fromkeys(of.kind for of in compared):
        its = [of for of in compared if of.kind == kind]
        each.append(
            f"{kind}: {sum(of.holds for of in its)}, {sum(of.differ for of in its)} differ in "
            "whether there is a hint, the other holds end within "
            f"{max(of.apart_ms for of in its):.1f} ms of the model's"
        )
    return [f"The proxy's own rules were applied to sampled errors. {'; '.join(each)}."]


def _search(pause_for: str, chosen: "list[Arm]", seeds: list[int]) -> None:
    from leader_hints_report.simulation.pause import shortest_pause

    limit = _LIMIT.fullmatch(pause_for)
    if limit is None:
        raise PipelineError(f"--pause-for {pause_for}: give a percentile and ms, such as p99.9=500")
    share, limit_ms = float(limit[1]) / 100, float(limit[2])
    for arm in chosen:
        found = shortest_pause(arm, share, limit_ms, seeds)
        if found.pause_s is None:
            click.echo(
                f"{arm.name}: no pause of up to a day is enough; with one p{limit[1]} is "
                f"{found.value:.0f} ms"
            )
        else:
            click.echo(
                f"{arm.name}: {found.pause_s:.0f} s; the roll then takes {found.hours:.1f} hours, "
                f"and p{limit[1]} is {found.value:.0f} ms"
            )


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise PipelineError(f"{file}: {error.strerror}") from None
    click.echo(file)
