"""A fleet from a journal: who produces and consumes where, how leaders move, how long clients take.

A journal has errors and recoveries, and no rates. So these are estimated: from the share of moves
at which a client had an error at all. How late Metadata is follows from how long clients took
without a hint: the model is fitted to their mean.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arms import Mode, changed_fleet
from leader_hints_report.simulation.clients import rules_of
from leader_hints_report.simulation.fleet import Fleet, Reassignment, make_fleet
from leader_hints_report.simulation.journal.assumed import Assumptions
from leader_hints_report.simulation.simulate import simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Rows of a table that are read: the newest.
_MOST_ROWS: Final = 200_000
#: Moves within so many seconds are one batch.
_TOGETHER_S: Final = 2.0
#: A client that met all moves may have had any number of records: at least so many in a recovery.
_SURELY: Final = 3.0
_REPLICAS: Final = 3
#: The most that a fleet takes.
_MOST_RATE: Final = 1e9
_SEEDS: Final = (1, 2, 3)
_STEPS: Final = 8
_LATEST_MS: Final = 20_000.0
_ROLES: Final = {"Produce": "producer", "Fetch": "consumer"}


class Move(NamedTuple):
    """A leader move; ``at`` in seconds since 1970."""

    topic: str
    partition: int
    leader: int
    leader_before: int
    at: float


class Recovery(NamedTuple):
    """A recovery, as the table of this name has it; ``lost_ms`` until a success or the last error.
    ``helped``: the first error had a hint."""

    client_id: str
    software: str
    version: str
    api: str
    topic: str
    partition: int
    lost_ms: float
    helped: bool


class Taken(NamedTuple):
    """The ``fleet``, and what a reader is to know of it."""

    fleet: Fleet
    notes: list[str]


def fleet_from(
    moves: Sequence[Move], recoveries: Sequence[Recovery], assumed: Assumptions | None = None
) -> Taken:
    """Return the fleet that a journal is of, with its moves as the event unless one is given.

    ``assumed``: what is known besides.

    :raises PipelineError: the journal has no moves, or no recoveries without a hint, or what is
        given does not fit it.
    """
    assumed = assumed or Assumptions()
    if not moves:
        raise PipelineError("--journal: it has no leader moves; there is nothing to go by")
    known = [one for one in recoveries if one.api in _ROLES and _is_known(one)]
    without = [one.lost_ms for one in known if not one.helped]
    if not without:
        raise PipelineError(
            "--journal: no known client had an error without a hint; take a journal of mode observe"
        )
    clients = _clients(moves, known)
    if not clients:
        raise PipelineError("--journal: it has errors of no known client of a topic that had moves")
    sizes, gaps = _batches(moves)
    brokers = max(2, len(_nodes(moves)))
    document: dict[str, Any] = {
        "cluster": {"brokers": brokers},
        "topics": [{**one, "replication": min(_REPLICAS, brokers)} for one in _topics(moves)],
        "clients": clients,
        "event": {
            "kind": "reassignment",
            "partitions": max(1, round(median(sizes))) * len(sizes),
            "batch": max(1, round(median(sizes))),
            "batch_pause_s": min(max(1.0, median(gaps) if gaps else 1.0), 3600.0),
            "epoch_before_ms": 0,
        },
    }
    partitions = sum(topic["partitions"] for topic in document["topics"])
    document["event"]["partitions"] = min(document["event"]["partitions"], partitions)
    make_fleet(document, "--journal")
    document = assumed.over(document)
    make_fleet(assumed.with_event(document), "--assume")
    # Clients took as long as they did while the journal's own leaders moved.
    fleet, model_ms = _fitted(make_fleet(document, "--assume"), mean(without))
    fleet = make_fleet(assumed.with_event(fleet.model_dump(mode="json")), "--assume")
    event = "the event is the one given" if assumed.has_event else _drawn(fleet)
    left_out = len({one.client_id for one in recoveries}) - len({one.client_id for one in known})
    return Taken(
        fleet,
        [
            f"From the journal: {len(moves)} moves in {len(sizes)} batches, {len(known)} "
            f"recoveries, {mean(without):.0f} ms in the mean without a hint; the model has "
            f"{model_ms:.0f} ms with Metadata {fleet.parameters.late_metadata_ms:.0f} ms late. "
            f"Topics without moves are not in it, and {event}. {left_out} clients of software that "
            "is not known were left out.",
            *_cut(moves, recoveries),
            *_assumed(assumed.left(min(_REPLICAS, fleet.cluster.brokers))),
        ],
    )


def _cut(moves: Sequence[Move], recoveries: Sequence[Recovery]) -> Iterator[str]:
    for name, rows in (("moves", moves), ("recoveries", recoveries)):
        if len(rows) >= _MOST_ROWS:
            yield f"Of the journal's {name} only the newest {_MOST_ROWS:,} were read."


def _drawn(fleet: Fleet) -> str:
    assert isinstance(fleet.event, Reassignment)
    of = fleet.event
    return f"the event moves {of.partitions} partitions drawn at random, {of.batch} at once"


def _assumed(left: str) -> list[str]:
    return [f"Assumed, since no journal tells it and it was not given: {left}."] if left else []


def _is_known(one: Recovery) -> bool:
    try:
        rules_of(one.software, one.version or "0")
    except PipelineError:
        return False
    return True


def _nodes(moves: Iterable[Move]) -> set[int]:
    return {node for one in moves for node in (one.leader, one.leader_before) if node >= 0}


def _topics(moves: Iterable[Move]) -> list[dict[str, Any]]:
    largest: dict[str, int] = {}
    for one in moves:
        largest[one.topic] = max(one.partition, largest.get(one.topic, 0))
    return [{"name": name, "partitions": most + 1} for name, most in sorted(largest.items())]


def _batches(moves: Sequence[Move]) -> tuple[list[int], list[float]]:
    """Return how many moves came together each time, and the seconds between."""
    times = sorted(one.at for one in moves)
    begins, sizes = [times[0]], [0]
    for at in times:
        if at - begins[-1] > _TOGETHER_S:
            begins.append(at)
            sizes.append(0)
        sizes[-1] += 1
    return sizes, [later - before for before, later in pairwise(begins)]


def _clients(moves: Sequence[Move], known: Sequence[Recovery]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, str, str], list[Recovery]] = defaultdict(list)
    for one in known:
        groups[one.api, one.software, one.version or "0", one.topic].append(one)
    of_topic: dict[str, int] = defaultdict(int)
    for move in moves:
        of_topic[move.topic] += 1
    partitions = {topic["name"]: topic["partitions"] for topic in _topics(moves)}
    clients = []
    for (api, software, version, topic), its in sorted(groups.items()):
        if topic not in partitions:
            continue
        count = len({one.client_id for one in its})
        client: dict[str, Any] = {
            "name": f"{software} {version} {api} {topic}",
            "role": _ROLES[api],
            "software": software,
            "version": version,
            "count": count,
            "topics": [topic],
        }
        if api == "Produce":
            met = min(len(its) / (count * of_topic[topic]), 1.0)
            took = max(mean(one.lost_ms for one in its), 1.0) / 1000
            expected = min(-math.log1p(-met), _SURELY) if met < 1 else _SURELY
            client["records_per_second"] = min(
                expected / took * count * partitions[topic], _MOST_RATE
            )
        clients.append(client)
    return clients


def _fitted(fleet: Fleet, wanted_ms: float) -> tuple[Fleet, float]:
    """Return the fleet with Metadata as late as its clients' mean recovery says, and the model's
    mean with that.

    :raises PipelineError: no client meets any of the moves, which are drawn.
    """

    def at(late: float) -> Fleet:
        return changed_fleet(fleet, f"late_metadata_ms={late}")

    def lost(late: float) -> float:
        outcomes = [simulate(at(late), Mode.NO_PROXY, seed) for seed in _SEEDS]
        lengths = np.concatenate(
            [part for one in outcomes for part in (one.stalls.lengths, one.recoveries)]
        )
        if not len(lengths):
            raise PipelineError(
                "--journal: no client met a move in the model: few of the partitions have clients"
            )
        return float(lengths.mean())

    if (without := lost(0.0)) >= wanted_ms:
        return at(0.0), without
    low, high = 0.0, _LATEST_MS
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) < wanted_ms else (low, middle)
    return at(high), lost(high)


def read_journal(
    session: "SparkSession", journal: str, folder: str, assumed: Assumptions | None = None
) -> Taken:
    """Run the pipeline over a journal into ``folder``, and return the fleet that it is of.

    ``assumed``: what is known besides.

    :raises PipelineError: the journal cannot be read, or does not say enough.
    """
    from leader_hints_report.batch import run
    from leader_hints_report.store.folder import read_table

    run(session, journal, folder)
    moves = read_table(session, folder, "leader_moves").where("moved")
    moves = moves.orderBy("first_seen", ascending=False).limit(_MOST_ROWS)
    moves = moves.select("topic", "partition", "leader", "leader_before", "first_seen")
    recoveries = read_table(session, folder, "recoveries")
    recoveries = recoveries.orderBy("first_error", ascending=False).limit(_MOST_ROWS)
    return fleet_from(
        [
            Move(
                row.topic, row.partition, row.leader, row.leader_before, row.first_seen.timestamp()
            )
            for row in moves.collect()
        ],
        [
            Recovery(
                row.client_id,
                row.software,
                row.software_version,
                row.api,
                row.topic,
                row.partition,
                row.lost_ms,
                row.hinted and not row.observed,
            )
            for row in recoveries.collect()
            if row.lost_ms is not None
        ],
        assumed,
    )
