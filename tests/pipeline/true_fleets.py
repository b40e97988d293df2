"""Random small fleets whose true clocks are known, and what tables must say of them.

Brokers are restarted in order, before midnight and after, and topics are deleted and recreated.
Sidecars' clocks are wrong, they drift or are put forward or back; sidecars learn of moves by errors
or at their next polls and know their brokers late; they are restarted and killed, and lines are
lost and come twice. What is expected follows from the lines that are left, put in order by the true
time of each: plain Python, one event at a time, that shares no code with the pipeline.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from tests.pipeline.lines import BEGIN, Event, client, error, event, latency, move, success

#: Times are seconds after BEGIN of :mod:`tests.pipeline.lines`; this is midnight.
MIDNIGHT: Final = (
    datetime(2026, 1, 3, tzinfo=UTC) - datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
).total_seconds()
_SIDECARS: Final = ("a", "b", "c")
_NODES: Final = {name: number for number, name in enumerate(_SIDECARS, 1)}
_PARTITIONS: Final = 12
#: Topics of one partition that are recreated, numbered as partitions: whether they have ids, and
#: the new one's first epoch, compared with the former one's last.
_RECREATED: Final = {
    _PARTITIONS + number: kind
    for number, kind in enumerate(
        (ids, first) for ids in (False, True) for first in ("lower", "equal", "higher")
    )
}
_ALL: Final = (*range(_PARTITIONS), *_RECREATED)
_ROLLS: Final = (MIDNIGHT - 1500, MIDNIGHT - 20, MIDNIGHT + 2400)
#: Apart from the rolls, and right behind one, which makes it one incident.
_RECREATIONS: Final = (MIDNIGHT - 800, MIDNIGHT + 185, MIDNIGHT + 800)
#: Clocks are put forward or back between two rolls, and in the middle of one.
_STEPS: Final = (MIDNIGHT - 700, MIDNIGHT + 60, MIDNIGHT + 1500)
#: Software of clients, by the number of their partition: what sidecars report that it uses, and the
#: versions of Produce and Fetch that it asks.
_SOFTWARE: Final = (
    ({"software": "librdkafka", "software_version": "2.5.3"}, "fetch,produce", 10, 16),
    ({"software": "kafka-python", "software_version": "3.0.0"}, "fetch_without_endpoints", 10, 13),
    ({"software": "sarama", "software_version": "1.43.0"}, "unknown", 10, 11),
)
#: APIs and the least and most version in which a client takes a hint, by the form that it uses.
_FORMS: Final = {
    "produce": ("Produce", 10, 99),
    "fetch": ("Fetch", 16, 99),
    "fetch_without_endpoints": ("Fetch", 12, 15),
}
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 300.0
#: Within so many seconds the same epoch is the same one.
_SAME_S: Final = 3600.0
_HOURS_AHEAD: Final = 7300.0
#: Clocks are known to so many seconds.
_CLOCK: Final = 0.1

Clock = Callable[[float], float]


class Episode(NamedTuple):
    """``at``: the true time of the first error; ``over``: until when it may have gone on.
    ``recovery_ms``: null where no success is left. ``clear``: the success came so late that it is
    behind the errors by clocks that are put forward or back on that day, too."""

    at: float
    errors: int
    hints: int
    over: float
    recovery_ms: float | None
    clear: bool = True


class Sighted(NamedTuple):
    """A leader epoch of a partition, and how many sidecars saw it; ``at``: when the first did.

    ``changes``: epoch and leader before and the leader after, for each topic that had the epoch, by
    the sidecar that knew the newest.
    """

    at: float
    partition: int
    epoch: int
    sidecars: int
    changes: frozenset[tuple[int, int, int]]


class Step(NamedTuple):
    """A clock is ``before`` seconds ahead, and then put forward by ``step``, at true ``at``."""

    before: float
    step: float
    at: float

    def on(self, day: date) -> float:
        """How many seconds of it are on a day."""
        return abs(self.step) if day == _day(self.at) else 0.0


class Incident(NamedTuple):
    """Its moves, and least and most errors: which of them count is known as well as clocks are."""

    kind: str
    moves: int
    least: int
    most: int


class Hour(NamedTuple):
    """Errors that a broker answered, those with a hint, and what clients lost after them."""

    errors: int
    hints: int
    lost_ms: float


@dataclass
class Fleet:
    """Lines that are left, in files, and what is known of them.

    ``clocks``: by how many seconds each is ahead, where that never changes. ``steps``: of the
    others, except those that drift. ``incidents`` are in order. ``hours``: what each broker did in
    each hour since 1970.
    ``missing``: how many numbers each run lacks; ``reported``: how many of these by gap events.
    """

    cluster: str
    files: list[list[Event]]
    clocks: dict[str, float]
    steps: dict[str, Step]
    moves: list[Sighted]
    episodes: dict[tuple[str, int], list[Episode]]
    incidents: list[Incident]
    hours: dict[tuple[int, int], Hour]
    missing: dict[str, int]
    reported: dict[str, int]

    def clock(self, name: str, day: date) -> tuple[float, float] | None:
        """By how many seconds a clock is ahead at first on a day, and by how many it was put
        forward or back on that day; None if it drifts."""
        if name in self.clocks:
            return self.clocks[name], 0.0
        if name not in self.steps:
            return None
        step = self.steps[name]
        return step.before + step.step * (day > _day(step.at)), step.on(day)

    @property
    def largest_step(self) -> float:
        """Seconds; 0 if no clock was put forward or back."""
        return max((abs(of.step) for of in self.steps.values()), default=0.0)


@dataclass
class _Sidecar:
    """``knows``: generation, epoch and leader of each partition; ``lines``: by the true time of
    writing."""

    name: str
    clock: Clock
    phase: float
    run: int = 0
    knows: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    lines: list[tuple[float, int, Event]] = field(default_factory=list)

    def write(self, kind: Callable[..., Event], at: float, true_at: float, **of: Any) -> None:
        """Write a line at a true time; ``true_at``: when what it says came from the broker."""
        line = kind(at + self.clock(at), 0, sidecar=self.name, **of)
        self.lines.append((at, self.run, line | {"_true": true_at}))


class _Move(NamedTuple):
    """``generation``: how many topics of that name there were before. ``recreated``: the topic
    is, with that epoch and leader."""

    at: float
    partition: int
    generation: int
    epoch: int
    old: str
    new: str
    recreated: bool = False


class _World:
    """``poll_s``: how often sidecars ask for moves that no error tells them."""

    def __init__(self, seed: int, poll_s: float, *, hours_ahead: bool) -> None:
        self._random = random.Random(seed)
        self._poll_s = poll_s
        self.clocks: dict[str, float] = {}
        self.steps: dict[str, Step] = {}
        self._leads = {p: (0, 1, _SIDECARS[p % len(_SIDECARS)]) for p in _ALL}
        self.sidecars = {
            name: _Sidecar(
                name,
                self._clock(name, hours=hours_ahead and name == "c"),
                self._random.uniform(0, poll_s),
                knows={**self._leads},
            )
            for name in _SIDECARS
        }
        self._moves: list[_Move] = []
        self._learned: dict[_Move, float] = {}

    def _clock(self, name: str, *, hours: bool) -> Clock:
        draw = self._random
        kind = (
            "hours"
            if hours
            else draw.choice(["right", "skewed", "skewed", "drifting", "stepping", "stepping"])
        )
        if kind == "drifting":
            slope = draw.uniform(-0.02, 0.02) / 3600
            return lambda at: slope * (at - MIDNIGHT)
        if kind == "stepping":
            before, when = draw.uniform(-0.5, 0.5), draw.choice(_STEPS)
            step = draw.choice([-1, 1]) * draw.uniform(0.05, 1.0)
            self.steps[name] = Step(before, step, when)
            return lambda at: before + step * (at > when)
        wrong = {"right": 0.0, "skewed": draw.uniform(-0.5, 0.5), "hours": _HOURS_AHEAD}[kind]
        self.clocks[name] = wrong
        return lambda _: wrong

    def live(self) -> None:
        """Write all lines."""
        for sidecar in self.sidecars.values():
            self._introduce(sidecar, int(MIDNIGHT) - 1801)
            for second in range(int(MIDNIGHT) - 1800, int(MIDNIGHT) + 2900, 20):
                at = second + self._random.random()
                sidecar.write(latency, at, at, ms=1.5)
        recreated = {p: self._random.choice(_RECREATIONS) for p in _RECREATED}
        for start in sorted((*_ROLLS, *_RECREATIONS)):
            if start in _ROLLS:
                self._roll(start)
            for partition in (p for p, when in recreated.items() if when == start):
                self._recreate(partition, start)
        self._learn()
        for moved in self._moves:
            if moved.old != moved.new:
                for client, api in (("p", "Produce"), ("c", "Fetch")):
                    self._client(moved, f"{client}-{moved.partition}", api)
        for sidecar in self.sidecars.values():
            self._restart(sidecar)

    def _introduce(self, sidecar: _Sidecar, at: float) -> None:
        for software, uses, _, _ in _SOFTWARE:
            sidecar.write(_named, at, at, uses=uses, **software)

    def _roll(self, start: float) -> None:
        """Restart brokers in order: leaders go away, and come back 40 seconds later."""
        for number, broker in enumerate(_SIDECARS):
            for partition in [p for p in _ALL if self._leads[p][2] == broker]:
                other = self._random.choice([name for name in _SIDECARS if name != broker])
                generation, epoch, _ = self._leads[partition]
                away = start + 70 * number + self._random.uniform(0, 3)
                self._moves += [
                    _Move(away, partition, generation, epoch + 1, broker, other),
                    _Move(away + 40, partition, generation, epoch + 2, other, broker),
                ]
                self._leads[partition] = generation, epoch + 2, broker

    def _recreate(self, partition: int, start: float) -> None:
        """Delete and create a topic: its new leader is any, and its epoch may be any by the
        time that sidecars learn of it."""
        generation, known, old = self._leads[partition]
        _, first = _RECREATED[partition]
        epoch = {"lower": 0, "equal": known, "higher": known + 3}[first]
        # The same leader at the same epoch is no news to anybody.
        new = self._random.choice([n for n in _SIDECARS if first != "equal" or n != old])
        at = start + self._random.uniform(0, 10)
        self._moves.append(_Move(at, partition, generation + 1, epoch, old, new, recreated=True))
        self._leads[partition] = generation + 1, epoch, new

    def _learn(self) -> None:
        """The old leader's sidecar learns by an error, others perhaps so, or at their polls."""
        news = []
        for moved in self._moves:
            # Without ids only a second poll tells a former topic from a broker that lags.
            doubtful = moved.recreated and _RECREATED[moved.partition] in (
                (False, "lower"),
                (False, "equal"),
            )
            for name, sidecar in self.sidecars.items():
                if name == moved.old or self._random.random() < 0.3:
                    when = moved.at + self._random.uniform(0.01, 0.08)
                else:
                    polls = -(-(moved.at - sidecar.phase) // self._poll_s) + doubtful
                    when = sidecar.phase + polls * self._poll_s
                if name == moved.old:
                    self._learned[moved] = when
                news.append((when, moved.generation, moved.epoch, name, moved))
        for when, generation, epoch, name, moved in sorted(news):
            sidecar = self.sidecars[name]
            known_generation, known, before = sidecar.knows[moved.partition]
            if (generation, epoch) <= (known_generation, known):
                continue
            sidecar.knows[moved.partition] = generation, epoch, moved.new
            ids, _ = _RECREATED.get(moved.partition, (False, ""))
            # A topic with another id is another one: what it begins with is no change.
            if generation == known_generation or not ids:
                sidecar.write(
                    move, when, when, before=_NODES[before], leader=_NODES[moved.new], epoch=epoch,
                    epoch_before=known, partition=moved.partition, topic=_topic(moved.partition),
                    _generation=generation,
                )  # fmt: skip

    def _client(self, moved: _Move, client: str, api: str) -> None:
        draw = self._random
        partition, epoch, old, new = moved.partition, moved.epoch, moved.old, moved.new
        at = moved.at + draw.uniform(0.001, 0.2)
        hinted = draw.random() < 0.7
        # A hint waits for the sidecar; without one a client asks for Metadata first.
        learned = self._learned[moved]
        hold = max(0.0, learned - at) + draw.uniform(0, 0.005) if hinted else 0.0
        errors = 1 if hinted else draw.randint(1, 3)
        # A client whose Metadata is stale asks a broker that does not lead either.
        lost = not hinted and draw.random() < 0.3
        (third,) = set(_SIDECARS) - {old, new}
        of: dict[str, Any] = {"client_id": client, "api": api, "partition": partition}
        of["topic"] = _topic(partition)
        software, _, *versions = _SOFTWARE[partition % len(_SOFTWARE)]
        of |= software
        asked = {"api_version": versions[api == "Fetch"]}
        for number in range(errors):
            came = at + 0.04 * number
            more: dict[str, Any] = {"hold_ms": round(hold * 1000, 3), "node": _NODES[old]}
            if hinted:
                more |= {"hinted": True, "leader": _NODES[new], "epoch": epoch}
            else:
                more["reason"] = "hold_expired"
            if api == "Fetch":
                more["epoch_before"] = epoch - 1
            self.sidecars[old].write(error, came + hold, came, **of, **asked, **more)
        last = at + 0.04 * (errors - 1) + hold
        if lost:
            last += 2 + draw.random()
            more = {"node": _NODES[third], "reason": "hold_expired"}
            self.sidecars[third].write(error, last, last, **of, **asked, **more)
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
        self._introduce(sidecar, at + 2)

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


def _topic(partition: int) -> str:
    return f"recreated-{partition}" if partition in _RECREATED else "t"


def _start(seconds: float, seq: int, *, sidecar: str) -> Event:
    of = {"software": "leader-hints", "software_version": "1", "hints": "on"}
    return event("start", seconds, seq, sidecar=sidecar, **of)


def _named(seconds: float, seq: int, *, sidecar: str, **of: Any) -> Event:
    return client(seconds, seq, sidecar=sidecar, **of)


def _stop(seconds: float, seq: int, *, sidecar: str) -> Event:
    return event("stop", seconds, seq, sidecar=sidecar)


def make_true_fleet(seed: int, poll_s: float = 60.0, *, hours_ahead: bool = False) -> Fleet:
    """A fleet that follows from the seed; its cluster and runs have it in their names."""
    cluster = f"c-{seed}-{poll_s:.0f}"
    world = _World(seed, poll_s, hours_ahead=hours_ahead)
    world.live()
    left: list[Event] = []
    for sidecar in world.sidecars.values():
        for run in (0, 1):
            of_run = sorted(
                (entry for entry in sidecar.lines if entry[1] == run), key=lambda entry: entry[0]
            )
            name = {"run": f"{cluster}-{sidecar.name}-{run}"}
            left += _unaware(world.lose([_of(cluster, line) | name for _, _, line in of_run]))
    _judge(left)
    early = [one for one in left if one["_true"] < MIDNIGHT + 100]
    late = [one for one in left if one["_true"] >= MIDNIGHT + 100]
    again = random.Random(seed).sample(left, 30)
    episodes = _episodes(left, world.steps)
    moves = _moves(left)
    known_s = _CLOCK + max((abs(of.step) for of in world.steps.values()), default=0.0)
    return Fleet(
        cluster=cluster,
        files=[[_shown(one) for one in part] for part in (early, late, again)],
        clocks=world.clocks,
        steps=world.steps,
        moves=moves,
        episodes=episodes,
        hours=_hours(left),
        incidents=_incidents(moves, [one for met in episodes.values() for one in met], known_s),
        missing=_missing(left),
        reported=_reported(left),
    )


def _of(cluster: str, line: Event) -> Event:
    return line | {"cluster": cluster} if "cluster" in line else line


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


def _judge(lines: list[Event]) -> None:
    """Say of each error whether its client had a hint that it uses, by the lines that are left."""

    def who(one: Event) -> tuple[str, str, str]:
        return one["run"], one["software"], one["software_version"]

    uses = {who(one): one["uses"].split(",") for one in lines if one["event"] == "client"}
    for one in lines:
        if one["event"] == "error":
            forms = [_FORMS[name] for name in uses.get(who(one), _FORMS) if name in _FORMS]
            used = any(
                one["api"] == api and least <= one["api_version"] <= most
                for api, least, most in forms
            )
            # Where it is not reported what clients use, all hints count.
            one["_hint"] = one["hinted"] and (used or who(one) not in uses)


def _moves(lines: list[Event]) -> list[Sighted]:
    """In the order in which they were seen. Topics that had the same epoch within an hour are
    taken for one: a journal does not tell them apart."""
    by_epoch = defaultdict(list)
    for one in lines:
        if one["event"] == "leader_change":
            by_epoch[one["partition"], one["epoch"]].append(one)
    found = []
    for (partition, epoch), sights in by_epoch.items():
        parts: list[list[Event]] = []
        for one in sorted(sights, key=lambda one: float(one["_true"])):
            if not parts or one["_true"] - parts[-1][-1]["_true"] > _SAME_S:
                parts.append([])
            parts[-1].append(one)
        for part in parts:
            sidecars = len({one["sidecar"] for one in part})
            found.append(
                Sighted(float(part[0]["_true"]), partition, epoch, sidecars, _changes(part))
            )
    return sorted(found, key=lambda one: one.at)


def _changes(sights: list[Event]) -> frozenset[tuple[int, int, int]]:
    """By the sidecar that knew the newest epoch of the same topic; else of the former one."""
    by_topic = defaultdict(list)
    for one in sights:
        newest = one["epoch_before"] < one["epoch"], one["epoch_before"]
        change = one["epoch_before"], one["leader_before"], one["leader"]
        by_topic[one["_generation"]].append((newest, change))
    return frozenset(max(changes)[1] for changes in by_topic.values())


def _incidents(moves: list[Sighted], met: list[Episode], known_s: float) -> list[Incident]:
    """``known_s``: to so many seconds clocks are known."""
    found: list[list[float]] = []
    for one in moves:
        if not found or one.at - found[-1][-1] > _PAUSE_S:
            found.append([])
        found[-1].append(one.at)
    return [
        Incident(
            # A topic that is recreated left no broker.
            "roll" if any(start <= times[0] < start + 60 for start in _ROLLS) else "other",
            len(times),
            _errors(met, times[0] + known_s, times[-1]),
            _errors(met, times[0] - known_s, times[-1]),
        )
        for times in found
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
            found[key] = Hour(of.errors + 1, of.hints + one["_hint"], of.lost_ms + lost_ms)
    return dict(found)


def _day(at: float) -> date:
    return (BEGIN + timedelta(seconds=at)).date()


def _episodes(lines: list[Event], steps: dict[str, Step]) -> dict[tuple[str, int], list[Episode]]:
    """By client id and partition; a client has one API here."""
    return {key: _episodes_of(met, steps) for key, met in _by_client(lines).items()}


def _by_client(lines: list[Event]) -> dict[tuple[str, int], list[Event]]:
    of_client = defaultdict(list)
    for one in lines:
        if one["event"] in ("error", "recovery"):
            of_client[one["client_id"], one["partition"]].append(one)
    return dict(of_client)


def _episodes_of(met: list[Event], steps: dict[str, Step]) -> list[Episode]:
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
                errors=before.errors + 1, hints=before.hints + one["_hint"], over=now + _PATIENCE_S
            )
            last = now
        elif open_ is not None:
            errors = [of for of in met if open_.at <= of["_true"] and of["event"] == "error"]
            clear = all(_is_clear(of, one, steps) for of in errors if of["_true"] <= now)
            took_ms = (now - open_.at) * 1000
            found.append(open_._replace(recovery_ms=took_ms, over=now, clear=clear))
            open_ = None
    return found if open_ is None else [*found, open_]


def _is_clear(error_: Event, success_: Event, steps: dict[str, Step]) -> bool:
    """Whether steps of the two clocks on that day are too small to make the success the first."""
    day = _day(error_["_true"])
    stepped = sum(
        steps[one["sidecar"]].on(day) for one in (error_, success_) if one["sidecar"] in steps
    )
    between = float(success_["_true"] - error_["_true"])
    return stepped == 0 or error_["sidecar"] == success_["sidecar"] or between > stepped + _CLOCK


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
