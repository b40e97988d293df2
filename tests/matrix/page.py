"""docs/compatibility.md, made from the results of all cells and runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tests.harness.maven import ROOT
from tests.matrix import results
from tests.matrix.brokers import BROKERS, BrokerKind
from tests.matrix.features import MEANINGS, Feature
from tests.matrix.results import Cell
from tests.matrix.roster import CLIENTS, is_run
from tests.runs import page as runs

FILE = ROOT / "docs" / "compatibility.md"
COMMAND = "make test-matrix"
NOT_RUN = "not run"
_NO_CELL = "-"
_OVERVIEW = "## Brokers and clients"
_MODES = {"zk": "ZooKeeper", "kraft": "KRaft"}

Cells = Mapping[tuple[str, str], Cell]
"""Cells by the names of broker and client; those that never ran are not there."""


def collect() -> Cells:
    """All cells that were ever run."""
    return {
        (broker, client): cell
        for broker in BROKERS
        for client, cell in results.load(broker).items()
        if client in CLIENTS and is_run(broker, client)
    }


def write() -> None:
    """Write the page from all that was ever found."""
    FILE.write_text(render(collect(), runs.collect()))


def render(cells: Cells, found: runs.Found) -> str:
    """The whole page, from cells and the results of runs."""
    parts = (
        _introduction(),
        _OVERVIEW,
        _overview(cells),
        "## Versions",
        'The versions that producers and consumers sent. "10 as 9": the proxy sent 9 to the '
        "broker.",
        _by_broker(cells, _versions_text),
        "## Hints",
        "Hints that the proxy gave; errors without a hint, by reason; what came of those that "
        "waited for settled Metadata; and the APIs for which the "
        "client used a hint, of the proxy or of a broker that gives its own. Leaders move so "
        "that consumers get FENCED_LEADER_EPOCH. From a broker of 2.4, where Fetch goes as 10, "
        "they get NOT_LEADER_OR_FOLLOWER. franz-go uses no hint with FENCED_LEADER_EPOCH.",
        _by_broker(cells, _hints_text),
        "## ListOffsets refused",
        "How often a broker refused the end offset of a partition during moves, by error code "
        "(78 or, below version 5, 5). The client got the broker's answer unchanged.",
        _by_broker(cells, _refused_text),
        "## Features",
        "What was checked, over all brokers:",
        _list(f"**{feature}**: {meaning}." for feature, meaning in MEANINGS.items()),
        _features(cells),
        *_lacks(),
        *_failures(cells),
        runs.render(found),
        "## Kafka's command line tools",
        "Those of 2.4.1 and of 4.1.1, in front of brokers of 2.4.1: they create, list, describe "
        "and delete a topic, write lines while the leader moves, read them in a group, and "
        "describe the group (`tests/real/test_command_line_tools.py`).",
    )
    return "\n\n".join(parts) + "\n"


def overview_cells(page: str) -> dict[tuple[str, str], str]:
    """What the page's first table says, by the texts of its row and column."""
    _, _, rest = page.partition(_OVERVIEW)
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("|")]
    if not lines:
        return {}
    header, _, *rows = [[text.strip() for text in line.strip("|").split("|")] for line in lines]
    return {
        (row[0], column): text
        for row in rows
        for column, text in zip(header[1:], row[1:], strict=True)
    }


def title(broker: BrokerKind) -> str:
    """A broker version as the page names it."""
    return f"{broker.version} {_MODES[broker.mode]}"


def _introduction() -> str:
    return (
        "# Compatibility\n\n"
        "For operators and client developers: which client versions were tested with which "
        f"broker versions, and what was checked. `{COMMAND}` writes this page from its results: "
        "do not edit it. A cell is one client with one broker version. Each of three brokers "
        "has a proxy in front of it (min.insync.replicas=2, a rack for each, "
        "RackAwareReplicaSelector). All features run together while all leaders move. Errors that "
        "can carry no hint wait until all brokers name the leader (`hold.settle: true`). Cells "
        "with `-` are left out: in front of brokers of 4.1, which give hints themselves, the proxy "
        "lets all pass ([more clients](deploy/kafka-4.md#tried) were tried there without one), and "
        "Java 4.1 is for brokers that give none."
    )


def _overview(cells: Cells) -> str:
    return _by_broker(cells, _overview_text)


def _overview_text(cell: Cell) -> str:
    passed = len(cell.features) - len(cell.failures)
    state = "**failed**" if cell.failures else "ok"
    return f"{state}, {passed} of {len(cell.features)}"


def _versions_text(cell: Cell) -> str:
    return "<br>".join(
        f"{api} {', '.join(versions)}" for api, versions in cell.versions.items() if versions
    )


def _hints_text(cell: Cell) -> str:
    missed = "".join(f"<br>{reason} {count}" for reason, count in sorted(cell.missed.items()))
    outcomes = ", ".join(f"{outcome} {count}" for outcome, count in sorted(cell.waited.items()))
    waited = f"<br>waited: {outcomes}" if outcomes else ""
    raw = "".join(f"<br>not read: {reason} {n}" for reason, n in cell.passed_raw.items())
    return f"given {cell.given}{missed}{waited}{raw}<br>used: {cell.used}"


def _refused_text(cell: Cell) -> str:
    codes = cell.refused_offsets.items()
    return ", ".join(f"{code}: {count}" for code, count in codes) or "never"


def _by_broker(cells: Cells, text: Callable[[Cell], str]) -> str:
    def said(broker: str, client: str) -> str:
        if not is_run(broker, client):
            return _NO_CELL
        cell = cells.get((broker, client))
        return NOT_RUN if cell is None else text(cell)

    rows = [
        [title(kind), *(said(broker, client) for client in CLIENTS)]
        for broker, kind in BROKERS.items()
    ]
    return _table(["broker", *CLIENTS], rows)


def _features(cells: Cells) -> str:
    rows = [
        [feature, *(_feature_text(cells, feature, client) for client in CLIENTS)]
        for feature in Feature
    ]
    return _table(["feature", *CLIENTS], rows)


def _feature_text(cells: Cells, feature: Feature, client: str) -> str:
    if feature in CLIENTS[client].lacks:
        return "not in this client"
    ran = [cell for (_, name), cell in cells.items() if name == client]
    failed = [title(BROKERS[cell.broker]) for cell in ran if cell.features[feature]]
    if failed:
        return "**failed**: " + ", ".join(failed)
    wanted = sum(is_run(broker, client) for broker in BROKERS)
    return f"ok, {len(ran)} of {wanted}" if ran else NOT_RUN


def _lacks() -> Sequence[str]:
    lines = [
        f"{name}, {feature}: {reason}."
        for name, client in CLIENTS.items()
        for feature, reason in client.lacks.items()
    ]
    return ("Not in these clients:", _list(lines))


def _failures(cells: Cells) -> Sequence[str]:
    lines = [
        f"{client} before {title(BROKERS[broker])}, {feature}: `{_one_line(error)}`"
        for (broker, client), cell in cells.items()
        for feature, error in cell.failures.items()
    ]
    return ("## Failures", _list(lines)) if lines else ()


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
