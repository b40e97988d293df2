"""`leader-hints conformance`: what any client does with leader hints, held against KIP-951.

Tested in ``tests/mock/test_conformance.py``.
"""

import json
import os
import secrets
import signal
import subprocess  # the command is the one that its user gave  # nosec B404
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from leader_hints.apis.keys import ApiKey
from leader_hints.cli.entrance import make_local, takes_entrance
from leader_hints.conformance import traits as judged
from leader_hints.conformance.traits import Trait, Verdict
from leader_hints.errors import ConfigurationError, LeaderHintsError
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.local import LocalSettings

if TYPE_CHECKING:
    from leader_hints.conformance.lab import Cluster, Lab

_BROKERS: Final = 3
_APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
#: Milliseconds by which Metadata is delayed, so that a client that goes on sooner used its hint.
_SLOW_METADATA: Final = 2000
#: Milliseconds of back-off that clients are asked to have: most clients' default; and so long that
#: what a busy machine adds to a retry is little beside it.
_USUAL_BACK_OFF, _LONG_BACK_OFF = 100, 1000
#: Moves, and refusals without a hint, by which a client's back-off is judged.
_ROUNDS: Final = 3
#: Seconds for a client to start and work, and to recover.
_START, _RECOVER = 60.0, 12.0
#: Seconds for which a client is left alone before something is done to it.
_SETTLE: Final = 0.5
#: Seconds for which the new leader refuses connections.
_REFUSES: Final = 1.0
_END: Final = 10.0
#: Milliseconds for which an error waits for its hint: what is judged is the client.
_PATIENT: Final = 2000
_LOOK: Final = 0.05


class ClientFailedError(LeaderHintsError):
    """The client ended by itself, or never produced or consumed."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A client before a cluster in one scenario.

    ``topic``: the scenario's own, whose partition 0 the first of ``nodes`` leads. ``prepare``: does
    what goes before a move of that to a node. ``apis``: what the client is known to use.
    """

    lab: "Lab"
    command: Sequence[str]
    topic: str
    nodes: Sequence[int]
    prepare: Callable[[str, int], None]
    apis: frozenset[str]


class _Ground(NamedTuple):
    """A cluster to try clients on: where it leads to, and the rest as a trial has it."""

    cluster: "Cluster"
    topics: Mapping[str, str]
    nodes: Sequence[int]
    prepare: Callable[[str, int], None]


@click.command("conformance", context_settings={"ignore_unknown_options": True})
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice(["move", "backoff", "stale", "equal", "unknown", "refuses"]),
    help="Only this one; may be given for several. Default: all.",
)
@click.option(
    "--api",
    "apis",
    multiple=True,
    type=click.Choice([api.name.capitalize() for api in _APIS]),
    help="Begin when the client uses this one; may be given for both. Default: either will do.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT[,...]",
    help="A cluster in place of the mock, of two brokers or more. Topics come and go there.",
)
@takes_entrance
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def conformance(
    command: Sequence[str],
    scenarios: Sequence[str],
    apis: Sequence[str],
    bootstrap: str | None,
    *,
    as_json: bool,
    **entrance: Any,
) -> None:
    """Run a client through leader moves and wrong hints, and report what it does with them.

    COMMAND produces to, or consumes from, partition 0 of a topic, or both, without end. It finds
    the cluster, the topic and the back-off that it should have in {bootstrap}, {topic} and
    {backoff_ms} among its arguments, or in the environment variables KAFKA_BOOTSTRAP, KAFKA_TOPIC
    and KAFKA_BACKOFF_MS. It is started again for each scenario. Exit code 1: it differs from
    KIP-951.
    """
    if not command:
        raise ConfigurationError("no COMMAND; give the client to run behind --")
    local = None
    if bootstrap:
        local = make_local({"bootstrap": bootstrap.split(",")}, **entrance)
    elif any(entrance.values()):
        raise ConfigurationError("TLS and SASL are for --bootstrap; the mock has none")
    versions, traits = _examine(local, command, scenarios or [*_SCENARIOS], frozenset(apis))
    report = {"versions": versions, "traits": [asdict(trait) for trait in traits]}
    click.echo(json.dumps(report, indent=2) if as_json else "\n".join(lines(versions, traits)))
    sys.exit(int(any(trait.verdict is Verdict.DIFFERS for trait in traits)))


def lines(versions: Mapping[str, Sequence[int]], traits: Sequence[Trait]) -> Iterator[str]:
    """Yield a report for people, as a table of Markdown."""
    yield "| API | versions asked | hints that these can carry |"
    yield "|---|---|---|"
    for api in _APIS:
        name = api.name.capitalize()
        asked = versions.get(name, [])
        if asked:
            carried = judged.asks_for_hints(api, max(asked))
            yield f"| {name} | {', '.join(map(str, asked))} | {carried} |"
    yield ""
    yield "| scenario | API | question | answer | KIP-951 |"
    yield "|---|---|---|---|---|"
    for trait in traits:
        verdict = f"differs: {trait.section}" if trait.section else str(trait.verdict)
        yield (
            f"| {trait.scenario} | {trait.api} | {trait.question} | {trait.answer} | {verdict} |"
        )


def _examine(
    local: LocalSettings | None,
    command: Sequence[str],
    scenarios: Sequence[str],
    apis: frozenset[str],
) -> tuple[dict[str, list[int]], list[Trait]]:
    # Imported here, since only this needs kio.
    from leader_hints.conformance.lab import Lab

    traits: list[Trait] = []
    versions: dict[str, list[int]] = {}
    hold = HoldSettings(deadline_ms=_PATIENT, link_ms_per_second=1000)
    ground = _mock() if local is None else _standing(local)
    with ground as (cluster, topics, nodes, prepare):
        for name in scenarios:
            with Lab(cluster, hold, local) as lab:
                trial = _Trial(lab, command, topics[name], nodes, prepare, apis)
                traits += _SCENARIOS[name](trial)
                versions = versions or judged.versions(lab.seen())
    return versions, traits


@contextmanager
def _mock() -> Iterator[_Ground]:
    # Imported here, since only this needs librdkafka.
    from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster

    topics = {name: name for name in _SCENARIOS}
    with MockCluster(_BROKERS, dict.fromkeys(topics, 1), BEFORE_HINTS) as cluster:
        yield _Ground(cluster, topics, sorted(cluster.brokers), lambda topic, node: None)


@contextmanager
def _standing(local: LocalSettings) -> Iterator[_Ground]:
    """Create topics with unique names on a real cluster, and delete them at the end."""
    from leader_hints.conformance.standing_cluster import StandingCluster

    cluster = StandingCluster(local)
    if len(cluster.nodes) < 2:
        raise ConfigurationError("--bootstrap: leaders cannot move in a cluster of one broker")
    mark = secrets.token_hex(4)
    topics = {name: f"leader-hints-conformance-{name}-{mark}" for name in _SCENARIOS}
    cluster.create([*topics.values()])
    try:
        yield _Ground(
            cluster, topics, cluster.nodes, lambda topic, node: cluster.prepare(topic, 0, node)
        )
    finally:
        cluster.delete([*topics.values()])


def _move(trial: _Trial) -> list[Trait]:
    lab, topic, node = trial.lab, trial.topic, trial.nodes[1]
    with _client(trial):
        _prepare(trial, node)
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
        since = time.monotonic()
        lab.move_leader(topic, 0, node)
        _recover(trial, since)
        # It may ask for Metadata after it has recovered.
        time.sleep(_SETTLE)
        return _each(trial, since, judged.of_move)


def _back_off(trial: _Trial) -> list[Trait]:
    """Refuse now without a hint, now with one, so that both meet the same load of the machine."""
    lab, topic = trial.lab, trial.topic
    unhinted: list[_Found] = []
    hinted: list[_Found] = []
    with _client(trial, _LONG_BACK_OFF):
        for turn in range(_ROUNDS):
            node = trial.nodes[(turn + 1) % 2]
            _prepare(trial, node)
            since = time.monotonic()
            for name in _used(trial):
                lab.inject("error", apis=[name], topics=[topic], times=1)
            _recover(trial, since)
            unhinted.append(_follow(trial, since))
            _rest(lab)
            number = lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
            since = time.monotonic()
            lab.move_leader(topic, 0, node)
            _recover(trial, since)
            lab.end(number)
            hinted.append(_follow(trial, since))
            _rest(lab)
    return [
        trait
        for api in _APIS
        if api in hinted[0]
        for trait in judged.of_back_off(
            api, [found.get(api) for found in unhinted], [found.get(api) for found in hinted]
        )
    ]


def _stale(trial: _Trial) -> list[Trait]:
    return _old_hint(trial, "stale")


def _equal(trial: _Trial) -> list[Trait]:
    return _old_hint(trial, "equal")


def _old_hint(trial: _Trial, kind: str) -> list[Trait]:
    lab = trial.lab
    with _client(trial):
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
        since = time.monotonic()
        for api in ("Produce", "Fetch"):
            lab.inject("error", apis=[api], topics=[trial.topic], hint=kind, times=1)
        _recover(trial, since)
        return _each(
            trial, since, lambda api, found: judged.of_old_hint(f"{kind} epoch", api, found)
        )


def _unknown_node(trial: _Trial) -> list[Trait]:
    lab, node = trial.lab, trial.nodes[-1]
    lab.inject("stale_metadata", hide_nodes=[node])
    with _client(trial):
        _prepare(trial, node)
        # Metadata without the node would make a client forget it that has just learnt of it.
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
        since = time.monotonic()
        lab.move_leader(trial.topic, 0, node)
        _recover(trial, since)
        return _each(trial, since, judged.of_unknown_node)


def _refusing_leader(trial: _Trial) -> list[Trait]:
    lab, node = trial.lab, trial.nodes[1]
    with _client(trial):
        _prepare(trial, node)
        number = lab.inject("refuse", routes=[f"broker-{node}"])
        since = time.monotonic()
        lab.move_leader(trial.topic, 0, node)
        time.sleep(_REFUSES)
        lab.end(number)
        _recover(trial, since)
        return _each(trial, since, judged.of_refusing_leader)


#: By the names that they have as options.
_SCENARIOS: Final[Mapping[str, Callable[[_Trial], list[Trait]]]] = {
    "move": _move,
    "backoff": _back_off,
    "stale": _stale,
    "equal": _equal,
    "unknown": _unknown_node,
    "refuses": _refusing_leader,
}
_Found = Mapping[ApiKey, judged.Answered | None]


def _used(trial: _Trial) -> set[str]:
    """The APIs that the client has asked about the topic."""
    return {s.api for s in trial.lab.seen() if (trial.topic, 0) in s.partitions}


def _follow(trial: _Trial, since: float) -> _Found:
    """What came of the first refusal of each API that the client uses."""
    used, seen = _used(trial), trial.lab.seen()
    return {
        api: judged.follow(seen, api, trial.topic, since)
        for api in _APIS
        if api.name.capitalize() in used
    }


def _each(
    trial: _Trial, since: float, judge: Callable[[ApiKey, judged.Answered | None], list[Trait]]
) -> list[Trait]:
    found = _follow(trial, since)
    return [trait for api, answered in found.items() for trait in judge(api, answered)]


def _prepare(trial: _Trial, node: int) -> None:
    trial.prepare(trial.topic, node)
    _rest(trial.lab)


def _rest(lab: "Lab") -> None:
    """Wait until no Metadata is on its way any more, and the client has settled."""
    end = time.monotonic() + 2 * _SLOW_METADATA / 1000
    while time.monotonic() < end and _asks_metadata(lab):
        time.sleep(_LOOK)
    time.sleep(_SETTLE)


def _asks_metadata(lab: "Lab") -> bool:
    asked = lab.seen("Metadata")
    answered = {(s.link, s.correlation_id) for s in asked if s.response is not None}
    return any((s.link, s.correlation_id) not in answered for s in asked)


def _recover(trial: _Trial, since: float) -> None:
    """Wait until each API that was refused succeeds again, or the patience is over."""
    end = time.monotonic() + _RECOVER
    while time.monotonic() < end:
        found = _follow(trial, since)
        if found and all(f is not None and f.recovered is not None for f in found.values()):
            return
        time.sleep(_LOOK)


@contextmanager
def _client(trial: _Trial, back_off: int = _USUAL_BACK_OFF) -> Iterator[None]:
    """Run the client while the block is; it works when the block begins.

    :raises ClientFailedError: it does not.
    """
    lab, topic, command = trial.lab, trial.topic, trial.command
    places = {"bootstrap": lab.bootstrap, "topic": topic, "backoff_ms": f"{back_off}"}
    arguments = [_filled(argument, places) for argument in command]
    variables = {f"KAFKA_{name.upper()}": value for name, value in places.items()}
    environment = {**os.environ, **variables}
    try:
        process = subprocess.Popen(  # no shell, and the user's own command  # nosec B603
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigurationError(f"cannot run {command[0]}: {error.strerror}") from None
    try:
        end = time.monotonic() + _START
        while not (works := _works(lab, topic)) or not works >= trial.apis:
            if process.poll() is not None:
                raise ClientFailedError(f"the client ended with {process.returncode}")
            if time.monotonic() > end:
                lacking = " and ".join(sorted(trial.apis - works)) or "Produce or Fetch"
                raise ClientFailedError(
                    f"{lacking} of the client did not work for partition 0 of topic {topic} "
                    f"within {_START:g} s"
                )
            time.sleep(_LOOK)
        # Let it settle: what it does at its start is not what is looked for.
        time.sleep(1)
        yield
    finally:
        _end(process)


def _works(lab: "Lab", topic: str) -> set[str]:
    """The APIs that the client has used without an error."""
    return {
        s.api
        for s in lab.seen()
        if s.response is not None and s.response.errors.get((topic, 0)) == 0
    }


def _filled(argument: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its whole session: the command may be a shell with the client below it.
    for way in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, way)
            process.wait(_END)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            process.wait()
        return
