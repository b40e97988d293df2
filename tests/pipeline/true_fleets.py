"""Random small fleets whose true clocks are known, and what tables must say of them.

Brokers are restarted in order, before midnight and after. Sidecars' clocks are wrong, they learn of
moves by errors or at their next polls and know their brokers late; they are restarted and killed,
and lines are lost and come twice. What is expected follows from the lines that are left, put in
order by the true time of each: plain Python, one event at a time, that shares no code with the
pipeline.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tests.pipeline.lines import BEGIN, Event, error, event, latency, move, success

#: Times are seconds after BEGIN of :mod:`tests.pipeline.lines`; this is midnight.
MIDNIGHT: Final = (
    datetime(2026, 1, 3, tzinfo=UTC) - datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
).total_seconds()
_SIDECARS: Final = ("a", "b", "c")
_NODES: Final = {name: number for number, name in enumerate(_SIDECARS, 1)}
_PARTITIONS: Final = 12
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 300.0
_HOURS_AHEAD: Final = 7300.0
#: Clocks are known to so many seconds.
_CLOCK: Final = 0.1

Clock = Callable[[float], float]


class Episode(NamedTuple):
    """``at``: the true time of the first error; ``over``: until when it may have gone on.
    ``recovery_ms``: null where no success is left."""

    at: float
    errors: int
    hints: int
    over: float
    recovery_ms: float | None


class Hour(NamedTuple):
    """Errors that a broker answered, those with a hint, and what clients lost after them."""

    errors: int
    hints: int
    lost_ms: float


@dataclass
class Fleet:
    """Lines that are left, in files, and what is known of them.

    ``clocks``: by how many seconds each is ahead, where that never changes. ``sights``: of each
    partition and epoch, the sidecars that saw it. ``incidents``: how many moves each has, in order,
    and least and most errors: which of them count is known as well as clocks are.
    ``hours``: what each broker did in each hour since 1970.
    ``missing``: how many numbers each run lacks; ``reported``: how many of these by gap events.
    """

    files: list[list[Event]]
    clocks: dict[str, float]
    sights: dict[tuple[int, int], set[str]]
    episodes: dict[tuple[str, int], list[Episode]]
    incidents: list[tuple[int, int, int]]
    hours: dict[tuple[int, int], Hour]
    missing: dict[str, int]
    reported: dict[str, int]


@dataclass
class _Sidecar:
    """``knows``: the epoch and leader of each partition; ``lines``: by the true time of writing."""

    name: str
    clock: Clock
    phase: float
    run: int = 0
    knows: dict[int, tuple[int, str]] = field(default_factory=dict)
    lines: list[tuple[float, int, Event]] = field(default_factory=list)

    def write(self, kind: Callable[..., Event], at: float, true_at: float, **of: Any) -> None:
        """Write a line at a true time; ``true_at``: when what it says came from the broker."""
        line = kind(at + self.clock(at), 0, sidecar=self.name, **of)
        self.lines.append((at, self.run, line | {"_true": true_at}))


class _World:
    """``poll_s``: how often sidecars ask for moves that no error tells them."""

    def __init__(self, seed: int, poll_s: float, *, hours_ahead: bool) -> None:
        self._random = random.Random(seed)
        self._poll_s = poll_s
        self.clocks: dict[str, float] = {}
        self.sidecars = {
            name: _Sidecar(
                name,
                self._clock(name, hours=hours_ahead and name == "c"),
                self._random.uniform(0, poll_s),
                knows={p: (1, _SIDECARS[p % len(_SIDECARS)]) for p in range(_PARTITIONS)},
            )
            for name in _SIDECARS
        }
        self._moves: list[tuple[float, int, int, str, str]] = []
        self._learned: dict[tuple[int, int], float] = {}

    def _clock(self, name: str, *, hours: bool) -> Clock:
        draw = self._random
        kind = "hours" if hours else draw.choice(["right", "skewed", "skewed", "drifting"])
        if kind == "drifting":
            slope = draw.uniform(-0.02, 0.02) / 3600
            return lambda at: slope * (at - MIDNIGHT)
        wrong = {"right": 0.0, "skewed": draw.uniform(-0.5, 0.5), "hours": _HOURS_AHEAD}[kind]
        self.clocks[name] = wrong
        return lambda _: wrong

    def live(self) -> None:
        """Write all lines."""
        rolls = (MIDNIGHT - 1500, MIDNIGHT - 20, MIDNIGHT + 1500)
        for sidecar in self.sidecars.values():
            for second in range(int(MIDNIGHT) - 1800, int(MIDNIGHT) + 2000, 20):
                at = second + self._random.random()
                sidecar.write(latency, at, at, ms=1.5)
        for start in rolls:
            self._roll(start)
        self._learn()
        for at, partition, epoch, old, new in self._moves:
            for client, api in (("p", "Produce"), ("c", "Fetch")):
                self._client(at, f"{client}-{partition}", api, partition, epoch, old, new)
        for sidecar in self.sidecars.values():
            self._restart(sidecar)

    def _roll(self, start: float) -> None:
        """Restart brokers in order: leaders go away, and come back 40 seconds later."""
        for number, broker in enumerate(_SIDECARS):
            for partition in range(number, _PARTITIONS, len(_SIDECARS)):
                other = self._random.choice([name for name in _SIDECARS if name != broker])
                epoch = 2 + sum(moved[1] == partition for moved in self._moves)
                away = start + 70 * number + self._random.uniform(0, 3)
                self._moves.append((away, partition, epoch, broker, other))
                self._moves.append((away + 40, partition, epoch + 1, other, broker))

    def _learn(self) -> None:
        """The old leader's sidecar learns by an error, others perhaps so, or at their polls."""
        news = []
        for at, partition, epoch, old, new in self._moves:
            for name, sidecar in self.sidecars.items():
                if name == old or self._random.random() < 0.3:
                    when = at + self._random.uniform(0.01, 0.08)
                else:
                    polls = -(-(at - sidecar.phase) // self._poll_s)
                    when = sidecar.phase + polls * self._poll_s
                if name == old:
                    self._learned[partition, epoch] = when
                news.append((when, epoch, name, partition, new))
        for when, epoch, name, partition, leader in sorted(news):
            sidecar = self.sidecars[name]
            known, before = sidecar.knows[partition]
            if epoch > known:
                sidecar.knows[partition] = (epoch, leader)
                sidecar.write(
                    move, when, when, before=_NODES[before], leader=_NODES[leader], epoch=epoch,
                    epoch_before=known, partition=partition,
                )  # fmt: skip

    def _client(
        self, moved: float, client: str, api: str, partition: int, epoch: int, old: str, new: str
    ) -> None:
        draw = self._random
        at = moved + draw.uniform(0.001, 0.2)
        hinted = draw.random() < 0.7
        # A hint waits for the sidecar; without one a client asks for Metadata first.
        learned = self._learned[partition, epoch]
        hold = max(0.0, learned - at) + draw.uniform(0, 0.005) if hinted else 0.0
        errors = 1 if hinted else draw.randint(1, 3)
        # A client whose Metadata is stale asks a broker that does not lead either.
        lost = not hinted and draw.random() < 0.3
        (third,) = set(_SIDECARS) - {old, new}
        of: dict[str, Any] = {"client_id": client, "api": api, "partition": partition}
        for number in range(errors):
            came = at + 0.04 * number
            more: dict[str, Any] = {"hold_ms": round(hold * 1000, 3), "node": _NODES[old]}
            if hinted:
                more |= {"hinted": True, "leader": _NODES[new], "epoch": epoch}
            else:
                more["reason"] = "hold_expired"
            if api == "Fetch":
                more["epoch_before"] = epoch - 1
            self.sidecars[old].write(error, came + hold, came, **of, **more)
        last = at + 0.04 * (errors - 1) + hold
        if lost:
            last += 2 + draw.random()
            more = {"node": _NODES[third], "reason": "hold_expired"}
            self.sidecars[third].write(error, last, last, **of, **more)
            last += 2
        served = last + (draw.uniform(0.003, 0.05) if hinted else draw.uniform(0.1, 0.5))
        # Its sidecar may not know of the move yet.
        known = epoch - (draw.random() < 0.3)
        self.sidecars[new].write(success, served, served, **of, epoch=known, node=_NODES[new])

    def _restart(self, sidecar: _Sidecar) -> None:
        """Between two incidents: in order, or killed with its last half minute of lines."""
        at = MIDNIGHT + self._random.choice([-900, 900]) + self._random.uniform(0, 60)
        killed = self._random.random() < 0.5
        kept = []
        for when, _, line in sidecar.lines:
            if not (killed and at - 30 < when <= at):
                kept.append((when, int(when > at), line))
        sidecar.lines = kept
        if not killed:
            sidecar.write(_stop, at, at)
        sidecar.run = 1
        sidecar.write(_start, at + 1, at + 1)

    def lose(self, lines: list[Event]) -> list[Event]:
        """Number the lines of a run, and lose some of them: with a gap event, or without."""
        draw = self._random
        first = draw.randrange(len(lines) // 2, len(lines) - 8)
        dropped = draw.randint(1, 5)
        after = first + dropped
        gap = event(
            "gap", 0, 0, sidecar=lines[0]["sidecar"], run=lines[0]["run"], reason="full",
            dropped=dropped, first_seq=first, last_seq=after - 1,
        )  # fmt: skip
        # Written as soon as there is room.
        gap |= {name: lines[after][name] for name in ("time", "_true")}
        numbered = [
            one | {"seq": seq} for seq, one in enumerate([*lines[:after], gap, *lines[after:]])
        ]
        near = min(range(len(numbered)), key=lambda seq: abs(numbered[seq]["_true"] - MIDNIGHT))
        silent = {near, near + 1} | {seq for seq in range(len(numbered)) if draw.random() < 0.01}
        lost = set(range(first, after)) | silent
        return [one for one in numbered if one["seq"] not in lost]


def _start(seconds: float, seq: int, *, sidecar: str) -> Event:
    of = {"software": "leader-hints", "software_version": "1", "hints": "on"}
    return event("start", seconds, seq, sidecar=sidecar, **of)


def _stop(seconds: float, seq: int, *, sidecar: str) -> Event:
    return event("stop", seconds, seq, sidecar=sidecar)


def make_true_fleet(seed: int, poll_s: float = 60.0, *, hours_ahead: bool = False) -> Fleet:
    """A fleet that follows from the seed."""
    world = _World(seed, poll_s, hours_ahead=hours_ahead)
    world.live()
    left: list[Event] = []
    for sidecar in world.sidecars.values():
        for run in (0, 1):
            of_run = sorted(
                (entry for entry in sidecar.lines if entry[1] == run), key=lambda entry: entry[0]
            )
            name = {"run": f"{sidecar.name}-{run}"}
            left += _unaware(world.lose([line | name for _, _, line in of_run]))
    early = [one for one in left if one["_true"] < MIDNIGHT + 100]
    late = [one for one in left if one["_true"] >= MIDNIGHT + 100]
    again = random.Random(seed).sample(left, 30)
    episodes = _episodes(left)
    return Fleet(
        files=[[_shown(one) for one in part] for part in (early, late, again)],
        clocks=world.clocks,
        sights=_sights(left),
        episodes=episodes,
        hours=_hours(left),
        incidents=_incidents(left, [one for met in episodes.values() for one in met]),
        missing=_missing(left),
        reported=_reported(left),
    )


def _shown(line: Event) -> Event:
    return {name: value for name, value in line.items() if not name.startswith("_")}


def _unaware(lines: list[Event]) -> list[Event]:
    """A run's lines; its sidecar learns of its broker only after its first errors and successes."""
    met = [one for one in lines if one["event"] in ("error", "recovery")]
    for one in met:
        one["_node"] = one["node"]
    for one in met[:3]:
        del one["cluster"], one["node"]
    return lines


def _sights(lines: list[Event]) -> dict[tuple[int, int], set[str]]:
    found = defaultdict(set)
    for one in lines:
        if one["event"] == "leader_change":
            found[one["partition"], one["epoch"]].add(one["sidecar"])
    return dict(found)


def _incidents(lines: list[Event], met: list[Episode]) -> list[tuple[int, int, int]]:
    first: dict[tuple[int, int], float] = {}
    for one in lines:
        if one["event"] == "leader_change":
            key = one["partition"], one["epoch"]
            first[key] = min(first.get(key, one["_true"]), one["_true"])
    found: list[list[float]] = []
    for at in sorted(first.values()):
        if not found or at - found[-1][-1] > _PAUSE_S:
            found.append([])
        found[-1].append(at)
    return [
        (
            len(moves),
            _errors(met, moves[0] + _CLOCK, moves[-1]),
            _errors(met, moves[0] - _CLOCK, moves[-1]),
        )
        for moves in found
    ]


def _errors(met: list[Episode], began: float, ended: float) -> int:
    """Of episodes from a minute before an incident to a minute after it, and not over before it."""
    return sum(
        one.errors for one in met if began - 60 <= one.at <= ended + 60 and one.over >= began
    )


def _hours(lines: list[Event]) -> dict[tuple[int, int], Hour]:
    """By broker and hour since 1970."""
    found: dict[tuple[int, int], Hour] = defaultdict(lambda: Hour(0, 0, 0.0))
    for met in _by_client(lines).values():
        in_order = sorted(met, key=lambda one: float(one["_true"]))
        for one, after in zip(in_order, [*in_order[1:], None], strict=True):
            if one["event"] == "recovery":
                continue
            waited = after["_true"] - one["_true"] if after else 0.0
            key = one["_node"], int((BEGIN.timestamp() + one["_true"]) // 3600)
            of = found[key]
            lost_ms = 1000 * waited if waited <= _PATIENCE_S else 0.0
            found[key] = Hour(of.errors + 1, of.hints + one["hinted"], of.lost_ms + lost_ms)
    return dict(found)


def _episodes(lines: list[Event]) -> dict[tuple[str, int], list[Episode]]:
    """By client id and partition; a client has one API here."""
    return {key: _episodes_of(met) for key, met in _by_client(lines).items()}


def _by_client(lines: list[Event]) -> dict[tuple[str, int], list[Event]]:
    of_client = defaultdict(list)
    for one in lines:
        if one["event"] in ("error", "recovery"):
            of_client[one["client_id"], one["partition"]].append(one)
    return dict(of_client)


def _episodes_of(met: list[Event]) -> list[Episode]:
    found: list[Episode] = []
    open_: Episode | None = None
    last = 0.0
    for one in sorted(met, key=lambda one: float(one["_true"])):
        now = float(one["_true"])
        if open_ is not None and now - last > _PATIENCE_S:
            found.append(open_)
            open_ = None
        if one["event"] == "error":
            before = open_ or Episode(now, 0, 0, now, None)
            open_ = before._replace(
                errors=before.errors + 1, hints=before.hints + one["hinted"], over=now + _PATIENCE_S
            )
            last = now
        elif open_ is not None:
            found.append(open_._replace(recovery_ms=(now - open_.at) * 1000, over=now))
            open_ = None
    return found if open_ is None else [*found, open_]


def _missing(lines: list[Event]) -> dict[str, int]:
    numbers = defaultdict(set)
    for one in lines:
        numbers[one["run"]].add(one["seq"])
    return {run: max(of) - min(of) + 1 - len(of) for run, of in numbers.items()}


def _reported(lines: list[Event]) -> dict[str, int]:
    return {
        run: sum(one.get("dropped", 0) for one in lines if one["run"] == run)
        for run in {one["run"] for one in lines}
    }
