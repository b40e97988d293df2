"""One simulation: a fleet, an event, a mode and a seed give what clients meet."""

from typing import Final, NamedTuple

import numpy as np

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Floats, Random
from leader_hints_report.simulation.batch import Cost, Counts, Course, Met, Stalls, cost
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.latencies import Base, Latencies
from leader_hints_report.simulation.layout import Layout, layout
from leader_hints_report.simulation.load.proxy_questions import Proxies
from leader_hints_report.simulation.load.requests import Api, BrokerLoad, RequestCounter, of_clients
from leader_hints_report.simulation.moves import Batch, batches, least_end
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import Propagation, propagate

#: Milliseconds after the last move that belong to the event.
_AFTERWARDS: Final = 60_000
#: Which draws a generator is for; so changes in one do not change the others.
_EVENT, _SPREAD, _CLIENTS, _LOAD = range(4)


class Outcome(NamedTuple):
    """What came of one simulation. ``stalls``: of producers, one for each client and partition;
    ``read_stalls``: until records were consumed; ``recoveries``: of consumers, one for each group
    and partition, from its first error until it reads again. ``load``: on brokers, by API;
    ``questions``: all that proxies asked while they held errors."""

    mode: Mode
    seed: int
    duration_ms: float
    moves: int
    batches: int
    records: float
    produce: Latencies
    consume: Latencies
    stalls: Stalls
    read_stalls: Stalls
    recoveries: Floats
    counts: Counts
    update_bytes: float
    load: dict[Api, BrokerLoad]
    questions: dict[Api, float]


def simulate(fleet: Fleet, mode: Mode, seed: int, where: Layout | None = None) -> Outcome:
    """Simulate an event once. The same arguments give the same outcome.

    ``where``: the fleet's layout, where it is known already.

    :raises PipelineError: the event cannot happen to this fleet.
    """
    where = where or layout(fleet)
    table = fleet.parameters
    costs: list[Cost] = []
    loads = _Loads(where, mode, table)
    counts, moves, update_bytes, last = Counts(), 0, 0.0, least_end(where, fleet.event)
    for number, batch in enumerate(
        batches(fleet, where, fleet.event, table, _random(seed, _EVENT, 0))
    ):
        # All modes meet the same course of each batch, so their differences are theirs.
        spread = propagate(fleet.cluster, where, batch, table, _random(seed, _SPREAD, number))
        course = Course(fleet.cluster, where, batch, spread, mode, table)
        its, met = cost(course, _random(seed, _CLIENTS, number))
        costs.append(its)
        counts = counts.plus(met.counts)
        # Not kept: there may be millions of requests and holds.
        loads.add(batch, spread, met, _random(seed, _LOAD, number))
        moves += len(batch.partitions)
        update_bytes += spread.update_bytes
        last = max(last, batch.at)
    duration = max(fleet.duration_s * 1000, last + _AFTERWARDS)
    stalls = Stalls.joined([one.produce for one in costs])
    behind = Stalls.joined([one.behind for one in costs])
    read = Stalls.joined([one.consume for one in costs])
    records = where.records_per_ms * duration
    produce = Base(table.base_p50_ms, table.base_p99_ms, table.base_tail)
    consume = Base(table.base_e2e_p50_ms, table.base_e2e_p99_ms, table.base_tail)
    return Outcome(
        mode,
        seed,
        duration,
        moves,
        len(costs),
        records,
        Latencies(records, produce, *Stalls.joined([stalls, behind])),
        Latencies(records, consume, *Stalls.joined([read, behind])),
        stalls,
        read,
        np.concatenate([one.recoveries for one in costs] or [np.empty(0)]),
        counts,
        update_bytes,
        loads.of(duration),
        {api: counter.asked_by_proxies for api, counter in loads.counters.items()},
    )


class _Loads:
    """The load on brokers, batch by batch."""

    def __init__(self, where: Layout, mode: Mode, table: Parameters) -> None:
        self.counters = {api: RequestCounter(where.brokers) for api in Api}
        self._brokers = np.arange(where.brokers)
        self._proxies: Proxies | None = None
        if mode.has_proxy:
            self._proxies = Proxies(where, table, settle=mode is Mode.SETTLED)

    def add(self, batch: Batch, spread: Propagation, met: Met, random: Random) -> None:
        answering = self._brokers
        if not batch.alive:
            answering = np.setdiff1d(answering, batch.old)
        for asked in of_clients(met.asks, answering, random):
            self.counters[Api.METADATA].clients(batch.at, asked)
        if self._proxies is not None:
            questions = self._proxies.questions(batch, spread, met.holds)
            for api, sent in questions.items():
                self.counters[api].questions(batch.at, sent)

    def of(self, duration: float) -> dict[Api, BrokerLoad]:
        polls = {Api.METADATA: self._proxies.polls_per_s if self._proxies is not None else 0.0}
        return {
            api: counter.load(duration, polls.get(api, 0.0))
            for api, counter in self.counters.items()
        }


def _random(seed: int, purpose: int, number: int) -> Random:
    return np.random.default_rng([seed, purpose, number])
