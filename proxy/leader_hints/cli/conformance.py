"""`leader-hints conformance`: what any client does with leader hints, held against KIP-951.

Tested in ``tests/mock/test_conformance.py``.
"""

import json
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from leader_hints.cli.entrance import make_local, takes_entrance
from leader_hints.conformance import traits as judged
from leader_hints.conformance.scenarios import SCENARIOS
from leader_hints.conformance.traits import Trait, Verdict
from leader_hints.conformance.trial import APIS, Trial
from leader_hints.errors import ConfigurationError
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.local import LocalSettings

if TYPE_CHECKING:
    from leader_hints.conformance.lab import Cluster

_BROKERS: Final = 3
#: Milliseconds for which an error waits for its hint: what is judged is the client.
_PATIENT: Final = 2000


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
    type=click.Choice([*SCENARIOS]),
    help="Only this one; may be given for several. Default: all.",
)
@click.option(
    "--api",
    "apis",
    multiple=True,
    type=click.Choice([api.name.capitalize() for api in APIS]),
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
    versions, traits = _examine(local, command, scenarios or [*SCENARIOS], frozenset(apis))
    report = {"versions": versions, "traits": [asdict(trait) for trait in traits]}
    shown = (*lines(versions, traits), "", *ending(traits))
    click.echo(json.dumps(report, indent=2) if as_json else "\n".join(shown))
    sys.exit(int(any(trait.verdict is Verdict.DIFFERS for trait in traits)))


def lines(versions: Mapping[str, Sequence[int]], traits: Sequence[Trait]) -> Iterator[str]:
    """Yield a report for people, as a table of Markdown."""
    yield "| API | versions asked | hints that these can carry |"
    yield "|---|---|---|"
    for api in APIS:
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


def ending(traits: Sequence[Trait]) -> Iterator[str]:
    """Yield how many traits are as KIP-951 specifies, and what is meant by each that is not."""
    count = Counter(trait.verdict for trait in traits)
    yield (
        f"{count[Verdict.OK]} as KIP-951 specifies, {count[Verdict.DIFFERS]} different, "
        f"{count[Verdict.NOT_APPLICABLE]} without a verdict."
    )
    for trait in traits:
        if trait.verdict is Verdict.DIFFERS:
            meant = judged.DEVIATIONS[trait.question]
            yield f"- {trait.scenario}, {trait.api}, {trait.question}: {meant} ({trait.section})."


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
                trial = Trial(lab, command, topics[name], nodes, prepare, apis)
                traits += SCENARIOS[name](trial)
                versions = versions or judged.versions(lab.seen())
    return versions, traits


@contextmanager
def _mock() -> Iterator[_Ground]:
    # Imported here, since only this needs librdkafka.
    from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster

    topics = {name: name for name in SCENARIOS}
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
    topics = {name: f"leader-hints-conformance-{name}-{mark}" for name in SCENARIOS}
    cluster.create([*topics.values()])
    try:
        yield _Ground(
            cluster, topics, cluster.nodes, lambda topic, node: cluster.prepare(topic, 0, node)
        )
    finally:
        cluster.delete([*topics.values()])
