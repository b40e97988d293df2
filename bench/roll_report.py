"""``python -m bench roll``: a real rolling restart, and what the model said of it before."""

import random
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import click

from bench.report import Verdict, finish, table, target_table
from bench.roll import BROKERS, PARTITIONS, TOPICS, Roll, cluster_of, proxies, roll
from bench.roll_forecast import CLIENT, TRIES, Forecast, changed, fleet, forecast
from bench.samples import Samples, from_samples_option
from bench.statistics import quantile, quantile_interval
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.fleet import Fleet
from tests.harness import maven
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.harness.java import java_clients
from tests.harness.proxyproc import Hints

_PAGE = maven.ROOT / "docs" / "simulation.md"
#: Journals of the rolls with proxies.
JOURNALS = maven.BUILD / "bench" / "roll"
VERSION = "3.6.2"
#: By arm: the proxies' mode, and the model's.
ARMS: Mapping[str, tuple[Hints | None, Mode]] = {
    "no proxy": (None, Mode.NO_PROXY),
    "observe": ("observe", Mode.NO_PROXY),
    "hints on": ("on", Mode.HINTS),
}
_KINDS = ("produce", "consume")
#: Most that a forecast may be away from what was measured, as a share of that.
_MOST_AWAY = 0.3
_MOST_AWAY_SAVED = 0.2


@dataclass
class _Setup:
    """``rounds`` of each arm, and the producers' ``acks``."""

    rounds: int
    acks: str


@click.command("roll")
@click.option("--rounds", default=2, show_default=True, help="Rolls of each arm.")
@click.option("--acks", default="all", show_default=True, help="Of the producers.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(rounds: int, acks: str, from_samples: bool, write: bool) -> None:
    """Roll a real cluster of three brokers, and compare the stalls with their forecast.

    Ends with 1 where a target is missed.
    """
    samples = Samples.read("roll") if from_samples else _measured(rounds, acks)
    of = samples.setup(_Setup)
    rolls = {arm: samples.get(Roll, "roll", arm) for arm in ARMS}
    tries = {tried: _forecasts(of.acks, rolls, name, value) for tried, name, value in TRIES}
    forecasts = tries[TRIES[0][0]]
    verdicts = [*_verdicts(rolls, forecasts), _saved(rolls, forecasts, of.rounds)]
    setup = (
        f"{BROKERS} brokers of {VERSION} with ZooKeeper, {TOPICS * PARTITIONS} partitions, "
        f"{TOPICS} producers (acks={of.acks}) and {TOPICS} consumers, Java {CLIENT}; "
        f"{of.rounds} of each arm. Median latency before the first broker stopped: "
        + ", ".join(f"{arm} {mean(its.quiet_p50):.0f} ms" for arm, its in rolls.items())
        + ":"
    )
    text = "\n\n".join(
        [
            setup,
            _table(rolls, forecasts, of.rounds),
            target_table(verdicts),
            "What was tried afterwards, one parameter at a time. Stalls without a proxy in ms, and "
            "the seconds that hints save in a roll:",
            _tries_table(tries, rolls, of.rounds),
        ]
    )
    finish(_PAGE, "roll", text, samples, verdicts, write=write)


def _forecasts(
    acks: str, rolls: Mapping[str, Roll], name: str, value: float
) -> Mapping[str, Mapping[str, Forecast]]:
    """Return the forecast of each arm and kind, with a parameter changed."""
    return {
        arm: dict(
            zip(_KINDS, forecast(changed(_fleet(acks, rolls[arm]), name, value), mode), strict=True)
        )
        for arm, (_, mode) in ARMS.items()
    }


def _fleet(acks: str, of: Roll) -> Fleet:
    return fleet(acks, mean(of.quiet_p50))


def _measured(rounds: int, acks: str) -> Samples:
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    samples.add_setup(_Setup(rounds, acks))
    rolls = {arm: Roll() for arm in ARMS}
    shutil.rmtree(JOURNALS, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="leader-hints-roll-") as name, ExitStack() as stack:
        folder = Path(name)
        cluster = stack.enter_context(cluster_of(VERSION, "zk", folder / "cluster"))
        clients = stack.enter_context(java_clients(folder, CLIENT))
        _one(cluster, clients, "no proxy", folder, "warm-up", acks)
        for number in range(1, rounds + 1):
            for arm in random.sample([*ARMS], len(ARMS)):
                of = _one(cluster, clients, arm, folder, f"{number}-{arm.replace(' ', '-')}", acks)
                rolls[arm].add(of)
                click.echo(f"roll {number}, {arm}: {_words(of)}", err=True)
    for arm, of in rolls.items():
        samples.add("roll", arm, of)
    return samples


def _one(
    cluster: RealCluster, clients: ClientProcess, arm: str, folder: Path, name: str, acks: str
) -> Roll:
    hints = ARMS[arm][0]
    journal = JOURNALS / name if hints is not None else None
    if journal is not None:
        journal.mkdir(parents=True)
    with proxies(cluster, hints, folder / name, journal) as bootstrap:
        return roll(cluster, clients, bootstrap, f"roll-{name}", acks)


def _words(of: Roll) -> str:
    parts = []
    for kind in _KINDS:
        stalls = getattr(of, kind)
        if stalls:
            p50, p99 = quantile(stalls, 0.5), quantile(stalls, 0.99)
            parts.append(f"{kind} {len(stalls)} stalls, p50 {p50:.0f}, p99 {p99:.0f} ms")
    return f"{'; '.join(parts)}; {of.records} records, {of.failed} failed"


def _table(
    rolls: Mapping[str, Roll], forecasts: Mapping[str, Mapping[str, Forecast]], rounds: int
) -> str:
    head = ["stalls, ms", "forecast p50", "measured", "95 %", "forecast p99", "measured", "95 %",
            "forecast a roll", "measured"]  # fmt: skip
    rows = []
    for kind in _KINDS:
        for arm, of in rolls.items():
            stalls, said = getattr(of, kind), forecasts[arm][kind]
            cells = []
            for share, value in ((0.5, said.p50), (0.99, said.p99)):
                low, high = quantile_interval(stalls, share)
                cells += [
                    f"{value:.0f}",
                    f"{quantile(stalls, share):.0f}",
                    f"{low:.0f} to {high:.0f}",
                ]
            rows.append(
                [f"{kind}, {arm}", *cells, f"{said.many:.0f}", f"{len(stalls) / rounds:.0f}"]
            )
    return table(head, rows)


def _tries_table(
    tries: Mapping[str, Mapping[str, Mapping[str, Forecast]]],
    rolls: Mapping[str, Roll],
    rounds: int,
) -> str:
    head = ["tried", "parameter"]
    head += [f"{kind} {name}" for kind in _KINDS for name in ("p50", "p99", "a roll")]
    head.append("saved, s")
    measured: list[str] = []
    for kind in _KINDS:
        stalls = getattr(rolls["no proxy"], kind)
        measured += [f"{quantile(stalls, share):.0f}" for share in (0.5, 0.99)]
        measured.append(f"{len(stalls) / rounds:.0f}")
    rows = [["measured", "", *measured, f"{_measured_saving(rolls, rounds):.1f}"]]
    for tried, name, value in TRIES:
        cells = []
        for said in tries[tried]["no proxy"].values():
            cells += [f"{said.p50:.0f}", f"{said.p99:.0f}", f"{said.many:.0f}"]
        parameter = f"`{name}` {value:g}" if name else ""
        rows.append([tried, parameter, *cells, f"{_said_saving(tries[tried]):.1f}"])
    return table(head, rows)


def _verdicts(
    rolls: Mapping[str, Roll], forecasts: Mapping[str, Mapping[str, Forecast]]
) -> list[Verdict]:
    verdicts = []
    for kind in _KINDS:
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            measured = quantile(getattr(rolls["no proxy"], kind), share)
            said = getattr(forecasts["no proxy"][kind], name)
            verdicts.append(
                _away(f"{name} of stalls, {kind}, no proxy", said, measured, _MOST_AWAY)
            )
    return verdicts


def _away(what: str, said: float, measured: float, most: float) -> Verdict:
    away = said / measured - 1
    text = f"{away:+.0%} ({said:.3g}, measured {measured:.3g})"
    return what, text, f"within {most:.0%}", abs(away) <= most


def _saved(
    rolls: Mapping[str, Roll], forecasts: Mapping[str, Mapping[str, Forecast]], rounds: int
) -> Verdict:
    """Of a roll: what all clients' stalls are less with hints on than with hints only observed."""

    return _away(
        "seconds that hints save in a roll",
        _said_saving(forecasts),
        _measured_saving(rolls, rounds),
        _MOST_AWAY_SAVED,
    )


def _said_saving(forecasts: Mapping[str, Mapping[str, Forecast]]) -> float:
    before, after = (
        sum(forecasts[arm][kind].sum for kind in _KINDS) for arm in ("observe", "hints on")
    )
    return before - after


def _measured_saving(rolls: Mapping[str, Roll], rounds: int) -> float:
    before, after = (
        sum(sum(getattr(rolls[arm], kind)) for kind in _KINDS) for arm in ("observe", "hints on")
    )
    return (before - after) / 1000 / rounds
