"""`leader-hints conformance`: what any client does with leader hints, held against KIP-951."""

import json
import os
import signal
import subprocess  # the command is the one that its user gave  # nosec B404
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from proxy.apis.keys import ApiKey
from proxy.core import conformance as judged
from proxy.core.conformance import Trait, Verdict
from proxy.errors import ConfigurationError, LeaderHintsError

if TYPE_CHECKING:
    from proxy.net.lab import Lab

_BROKERS: Final = 3
_APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
#: Milliseconds by which Metadata is delayed, so that a client that goes on sooner used its hint.
_SLOW_METADATA: Final = 2000
#: Seconds for a client to start and work, and to recover.
_START, _RECOVER = 60.0, 12.0
#: Seconds for which the new leader refuses connections.
_REFUSES: Final = 1.0
_END: Final = 10.0
_TOPICS: Final = ("move", "stale", "equal", "unknown", "refuses")


class ClientFailedError(LeaderHintsError):
    """The client ended by itself, or never produced or consumed."""


@click.command("conformance", context_settings={"ignore_unknown_options": True})
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([*_TOPICS]),
    help="Only this one; may be given for several. Default: all.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def conformance(command: Sequence[str], scenarios: Sequence[str], *, as_json: bool) -> None:
    """Run a client through leader moves and wrong hints, and say what it does with them.

    COMMAND produces to, or consumes from, partition 0 of a topic, or both, without end. It finds
    the cluster in {bootstrap} and {topic} among its arguments, or in the environment variables
    KAFKA_BOOTSTRAP and KAFKA_TOPIC. It is started anew for each scenario. Exit code 1: it differs
    from KIP-951.
    """
    if not command:
        raise ConfigurationError("no COMMAND; give the client to run behind --")
    versions, traits = _examine(command, scenarios)
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
    command: Sequence[str], scenarios: Sequence[str]
) -> tuple[dict[str, list[int]], list[Trait]]:
    # Imported here, since only this needs librdkafka and kio.
    from proxy.mock.cluster import BEFORE_HINTS, MockCluster
    from proxy.net.lab import Lab

    traits: list[Trait] = []
    versions: dict[str, list[int]] = {}
    with MockCluster(_BROKERS, dict.fromkeys(_TOPICS, 1), BEFORE_HINTS) as cluster:
        for name in scenarios or _SCENARIOS:
            with Lab(cluster) as lab:
                traits += _SCENARIOS[name](lab, command)
                versions = versions or judged.versions(lab.seen())
    return versions, traits


def _move(lab: "Lab", command: Sequence[str]) -> list[Trait]:
    with _client(lab, command, "move"):
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
        since = time.monotonic()
        lab.move_leader("move", 0, 2)
        _recover(lab, "move", since)
        return _each(lab, "move", since, judged.of_move)


def _stale(lab: "Lab", command: Sequence[str]) -> list[Trait]:
    return _old_hint(lab, command, "stale")


def _equal(lab: "Lab", command: Sequence[str]) -> list[Trait]:
    return _old_hint(lab, command, "equal")


def _old_hint(lab: "Lab", command: Sequence[str], kind: str) -> list[Trait]:
    with _client(lab, command, kind):
        lab.inject("delay", apis=["Metadata"], delay_ms=_SLOW_METADATA)
        since = time.monotonic()
        for api in ("Produce", "Fetch"):
            lab.inject("error", apis=[api], topics=[kind], hint=kind, times=1)
        _recover(lab, kind, since)
        return _each(
            lab, kind, since, lambda api, found: judged.of_old_hint(f"{kind} epoch", api, found)
        )


def _unknown_node(lab: "Lab", command: Sequence[str]) -> list[Trait]:
    lab.inject("stale_metadata", hide_nodes=[3])
    with _client(lab, command, "unknown"):
        since = time.monotonic()
        lab.move_leader("unknown", 0, 3)
        _recover(lab, "unknown", since)
        return _each(lab, "unknown", since, judged.of_unknown_node)


def _refusing_leader(lab: "Lab", command: Sequence[str]) -> list[Trait]:
    with _client(lab, command, "refuses"):
        number = lab.inject("refuse", routes=["broker-2"])
        since = time.monotonic()
        lab.move_leader("refuses", 0, 2)
        time.sleep(_REFUSES)
        lab.end(number)
        _recover(lab, "refuses", since)
        return _each(lab, "refuses", since, judged.of_refusing_leader)


#: By the name of each, which is that of its topic too.
_SCENARIOS: Final = {
    "move": _move,
    "stale": _stale,
    "equal": _equal,
    "unknown": _unknown_node,
    "refuses": _refusing_leader,
}


def _each(
    lab: "Lab",
    topic: str,
    since: float,
    judge: Callable[[ApiKey, judged.Answered | None], list[Trait]],
) -> list[Trait]:
    seen = lab.seen()
    asked = {s.api for s in seen if (topic, 0) in s.partitions}
    return [
        trait
        for api in _APIS
        if api.name.capitalize() in asked
        for trait in judge(api, judged.follow(seen, api, topic, since))
    ]


def _recover(lab: "Lab", topic: str, since: float) -> None:
    """Wait until each API that was refused succeeds again, or the patience is over."""
    end = time.monotonic() + _RECOVER
    while time.monotonic() < end:
        seen = lab.seen()
        used = {s.api for s in seen if (topic, 0) in s.partitions}
        found = [
            judged.follow(seen, api, topic, since) for api in _APIS if api.name.capitalize() in used
        ]
        if found and all(f is not None and f.recovered is not None for f in found):
            return
        time.sleep(0.05)


@contextmanager
def _client(lab: "Lab", command: Sequence[str], topic: str) -> Iterator[None]:
    """Run the client while the block is; it works when the block begins.

    :raises ClientFailedError: it does not.
    """
    places = {"bootstrap": lab.bootstrap, "topic": topic}
    arguments = [_filled(argument, places) for argument in command]
    environment = {**os.environ, "KAFKA_BOOTSTRAP": lab.bootstrap, "KAFKA_TOPIC": topic}
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
        while not _works(lab, topic):
            if process.poll() is not None:
                raise ClientFailedError(f"the client ended with {process.returncode}")
            if time.monotonic() > end:
                raise ClientFailedError(
                    f"the client did not use partition 0 of topic {topic} within {_START:g} s"
                )
            time.sleep(0.05)
        # Let it settle: what it does at its start is not what is looked for.
        time.sleep(1)
        yield
    finally:
        _end(process)


def _works(lab: "Lab", topic: str) -> bool:
    return any(
        s.response is not None and s.response.errors.get((topic, 0)) == 0 for s in lab.seen()
    )


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
