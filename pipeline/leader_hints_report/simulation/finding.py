"""How a client finds the next leader: holds, hints, Metadata and back-off, for many at once.

An episode is one client at one partition that moved. All columns have a row for each. Times are
milliseconds after the controller began with the batch.

1. An error reaches the broker's side at ``error``. Proxies may hold it: :func:`held_until`.
2. With a hint the client goes to the leader, at once or after its back-off.
3. Without one it asks a broker for Metadata, again and again until the answer has the move:
   :func:`metadata_known`. Then it goes there, by the rules of its software.
4. If it comes before the leader serves, it is refused and backs off: :func:`served`.
"""

from typing import NamedTuple

import numpy as np

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Bools, Floats, Random
from leader_hints_report.simulation.parameters import Parameters

#: Of Kafka's clients since KIP-580: a fifth more or less.
_JITTER = 0.2
#: retry.backoff.max.ms
_LONGEST = 1000.0


class Held(NamedTuple):
    """``until``: when the error goes on to the client; ``hinted``: with a hint."""

    until: Floats
    hinted: Bools


def held_until(
    mode: Mode,
    error: Floats,
    serves: Floats,
    shows: Floats,
    uses_hints: Bools,
    settles: Bools,
    asked: Floats,
    table: Parameters,
    *,
    kraft: bool,
) -> Held:
    """Return until when errors are held, as the fast form of the proxy's rules.

    A hint is given when some broker names the leader and the leader itself confirms it. An error
    that the proxy ``settles`` goes on when all brokers name it, and it does. ``asked``: how long
    after a broker knows something the proxy has heard it. No error is held for longer than the
    bounds of an error and of its link.
    """
    nobody = np.zeros(len(error), dtype=np.bool_)
    if mode is Mode.NATIVE:
        return Held(error, uses_hints)
    if not mode.has_proxy:
        return Held(error, nobody)
    bounds = table.deadline_ms, table.link_hold_ms
    bound = min(max(one, table.kraft_hold_ms) if kraft and one else one for one in bounds)
    found = np.maximum(shows.min(), serves) + asked
    good = np.maximum(error, found)
    hinted = uses_hints & (good <= error + bound)
    until = np.where(uses_hints, np.minimum(good, error + bound), error)
    settled = np.maximum(error, np.maximum(shows.max(), serves) + asked)
    until = np.where(settles & ~uses_hints, np.minimum(settled, error + bound), until)
    return Held(until + table.proxy_ms, hinted)


class Known(NamedTuple):
    """``at``: when a client got Metadata that has the moves; ``asks``: how often it asked, from
    ``first`` to ``last``."""

    at: Floats
    asks: Floats
    first: Floats
    last: Floats


def metadata_known(
    error: Floats,
    waits: Floats,
    refresh: Floats,
    shows: Floats,
    delay: Floats,
    table: Parameters,
    random: Random,
) -> Known:
    """Return when clients learn of a batch by Metadata.

    ``error``: when the error reached the client; it asks ``waits`` later, each time another
    broker, no sooner than ``refresh`` after the last time. ``delay``: what an answer waits for
    behind others on its connection.
    """
    at, last = np.empty(len(error)), np.empty(len(error))
    asks = np.zeros(len(error))
    first = asked = error + waits
    period = np.maximum(refresh, table.rtt_ms)
    left = np.arange(len(error))
    while len(left):
        # Until the first broker shows it no answer can have it.
        idle = np.floor(np.maximum(shows.min() - asked, 0) / period[left])
        asked = asked + idle * period[left]
        broker = random.integers(len(shows), size=len(left))
        fresh = shows[broker] <= asked + table.rtt_ms / 2
        asks[left] += idle + 1
        last[left[fresh]] = asked[fresh]
        at[left[fresh]] = asked[fresh] + table.rtt_ms + delay[left[fresh]]
        left, asked = left[~fresh], asked[~fresh]
        jitter = random.uniform(1 - _JITTER, 1 + _JITTER, len(left))
        asked = asked + period[left] * jitter
    return Known(at, asks, first, last)


def _growing(early: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Return the first sum of pauses that is at least ``early``, and how many they are: 1 step, 2,
    4 and so on while twice as long is no more than a second, and then seconds."""
    doubles = np.floor(np.log2(np.maximum(_LONGEST / step, 1)))
    pauses, many = np.zeros(len(early)), np.zeros(len(early))
    for number in range(int(doubles.max(initial=0))):
        another = (pauses < early) & (number < doubles)
        pauses = np.where(another, (2 ** (number + 1) - 1) * step, pauses)
        many += another
    seconds = np.ceil(np.maximum(early - pauses, 0) / _LONGEST)
    return pauses + seconds * _LONGEST, many + seconds


class Served(NamedTuple):
    """``at``: when the new leader's answer came; ``errors``: how many came before it."""

    at: Floats
    errors: Floats


def served(
    told: Floats,
    hinted: Bools,
    known: Floats,
    serves: Floats,
    backoff: Floats,
    skips: Bools,
    fresh_skips: Bools,
    grows: Bools,
    table: Parameters,
    random: Random,
) -> Served:
    """Return when the new leader serves clients.

    ``told``: when the error reached the client, ``hinted``: with a hint. ``known``: when Metadata
    has the move. ``fresh_skips``: it goes on as soon as that is so. Else it tries again after each
    ``backoff``, at the former leader while it knows no other. ``grows``: a back-off after refusals
    of the new one doubles, up to a second (KIP-580).
    """
    step = np.maximum(backoff, 0) + table.rtt_ms
    by_hint = told + np.where(skips, 0.0, backoff)
    late = np.maximum(known - told, 0)
    tries = np.where(fresh_skips, 0.0, np.maximum(np.ceil((late - backoff) / step), 0))
    by_metadata = np.where(fresh_skips, np.maximum(known, told), told + backoff + tries * step)
    goes = np.where(hinted, by_hint, by_metadata)
    early = np.maximum(serves - goes - table.rtt_ms / 2, 0)
    refused = np.ceil(early / step)
    pauses = refused * step
    growing, fewer = _growing(early, step)
    # Who does not back off has nothing that grows.
    grows = grows & (backoff > 0)
    pauses, refused = np.where(grows, growing, pauses), np.where(grows, fewer, refused)
    errors = 1 + np.where(hinted, 0.0, tries) + refused
    busy = table.busy_ms * np.exp(table.busy_spread * random.standard_normal(len(goes)))
    return Served(goes + pauses + table.rtt_ms + busy, errors)
