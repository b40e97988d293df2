"""Topic ids that clients use and that the view cannot name (KIP-516).

Brokers that take Fetch by name only (2.8 and 3.0) take no id in Metadata requests either, so the
name of an id is looked for by asking for all topics. In a large cluster that is expensive, and
anybody may send any id. So it is asked for rarely, never at the cost of other questions, and less
and less often for an id that brokers did not list: it is a deleted topic's, or a topic's that ACLs
hide from the proxy's own user, or nobody's.

A client that goes on to use such an id is better served by name, as without the proxy. That takes
two answers, so what other clients send must not push its id out meanwhile.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Collection
from itertools import islice

from leader_hints.core.clock import Clock, stopped
from leader_hints.core.cluster.refresh_rate import RefreshRate

#: Questions for all topics after a quiet time, and at most for each second in the long run.
_BURST, _PER_SECOND = 5, 1.0
#: Part of the time that they may take, however large the cluster is. Answers above three seconds
#: take more: then one is asked for each minute.
_SHARE = 0.05
#: Seconds until brokers are asked for the same id again: at first, and at most. It doubles.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 60.0
#: Seconds for which a broker may lag behind, and not list a new topic yet.
_LAG = 1.0
#: Seconds for which a client is served by name. It may have learnt since that its topic was
#: deleted; if not, it costs one more link.
_WITHHELD = 600.0
#: Ids, and clients, that are remembered; and ids of one request that are looked for, since more are
#: found by the same answer.
MOST_IDS = 1024

#: Host and client id. Clients may claim any: what is remembered of one concerns no other.
Client = tuple[str, str]


class _Unknown:
    """An id, used ``since``. Brokers are asked for it next ``at``, and then after a ``pause``.

    ``missed``: when the first question was asked whose answer lacked it. ``vain``: it was lacking
    later as well. ``users``: from how many addresses it is remembered.
    """

    __slots__ = ("at", "missed", "pause", "since", "users", "vain")

    def __init__(self, now: float) -> None:
        self.since = self.at = now
        self.pause = _FIRST_PAUSE
        self.missed: float | None = None
        self.vain = False
        self.users = 0


class UnknownIds:
    """Those of one cluster. Times are in seconds, by ``clock``, which never goes back.

    ``answers_changed``: called when brokers have answered about them; ``on_withheld``: with a
    client that uses an id which cannot be named, and with the id.
    """

    def __init__(self, clock: Clock = stopped) -> None:
        self._clock = clock
        self.answers_changed: Callable[[], None] | None = None
        self.on_withheld: Callable[[Client, bytes], None] | None = None
        self._rate = RefreshRate(_PER_SECOND, _BURST)
        self._ids: dict[bytes, _Unknown] = {}
        #: By the clients' address, those used last at the end; and how many these are together.
        self._used: dict[str, OrderedDict[bytes, None]] = {}
        self._remembered = 0
        #: Which id a client used, and when.
        self._clients: OrderedDict[Client, tuple[bytes, float]] = OrderedDict()

    def used(self, ids: Collection[bytes], now: float, address: str = "") -> bool:
        """Note that a client uses ``ids``; return whether brokers are to be asked now.

        ``address``: what distinguishes where it comes from, "" if that is not known.
        """
        due = [unknown for unknown in self._note(ids, now, address) if now >= unknown.at]
        if not due or not self._rate.take(now):
            return False
        for unknown in due:
            unknown.at = now + unknown.pause
            unknown.pause = min(2 * unknown.pause, _LONGEST_PAUSE)
        return True

    def _note(self, ids: Collection[bytes], now: float, address: str) -> list[_Unknown]:
        used = self._used.get(address) or OrderedDict()
        noted = []
        for topic_id in islice(ids, MOST_IDS):
            unknown = self._ids.setdefault(topic_id, _Unknown(now))
            if topic_id not in used:
                unknown.users += 1
                self._remembered += 1
                used[topic_id] = None
            used.move_to_end(topic_id)
            noted.append(unknown)
        if used:
            self._used[address] = used
        while self._remembered > MOST_IDS:
            self._make_room(self._remembered - MOST_IDS)
        return noted

    def _make_room(self, most: int) -> None:
        """Forget ids of the address that has the most: one that has few keeps them."""
        address, used = max(self._used.items(), key=lambda item: len(item[1]))
        for topic_id in [*islice(used, most)]:
            del used[topic_id]
            self._remembered -= 1
            unknown = self._ids[topic_id]
            unknown.users -= 1
            if not unknown.users:
                del self._ids[topic_id]
        if not used:
            del self._used[address]

    def answered(self, name: Callable[[bytes], str | None], asked_at: float, now: float) -> None:
        """Take note that a broker has listed all topics, for a question of ``asked_at``.

        ``name``: returns the name of an id by now, ``None`` where it is still not known.
        """
        # One slow answer must not keep all ids unknown for long.
        rarest = 1 / _LONGEST_PAUSE
        self._rate.per_second = min(max(_SHARE / max(now - asked_at, 1e-3), rarest), _PER_SECOND)
        self._forget([topic_id for topic_id in self._ids if name(topic_id) is not None])
        for unknown in self._ids.values():
            if unknown.missed is None:
                unknown.missed = asked_at if asked_at >= unknown.since else None
            elif asked_at >= unknown.missed + _LAG:
                unknown.vain = True
        if self.answers_changed is not None:
            self.answers_changed()

    def _forget(self, named: Collection[bytes]) -> None:
        """Forget ids that have names by now."""
        if not named:
            return
        for topic_id in named:
            del self._ids[topic_id]
        for address, used in [*self._used.items()]:
            left = [topic_id for topic_id in used if topic_id in self._ids]
            self._remembered -= len(used) - len(left)
            if left:
                self._used[address] = OrderedDict.fromkeys(left)
            else:
                del self._used[address]

    def lacking(self) -> list[tuple[bytes, bool]]:
        """Return the ids that an answer lacked, and whether a later one did as well."""
        return [(one, it.vain) for one, it in self._ids.items() if it.missed is not None]

    def told(self, lacking: Collection[tuple[bytes, bool]]) -> None:
        """Take :meth:`lacking` from a process that asks brokers."""
        self._ids = {}
        for topic_id, vain in lacking:
            unknown = self._ids[topic_id] = _Unknown(0.0)
            unknown.missed, unknown.vain = 0.0, vain

    def unnameable(self, topic_id: bytes, *, hides: bool) -> bool:
        """Whether brokers were asked for an id and do not list it, which is no lag.

        ``hides``: brokers hide topics from the proxy, so one answer is enough.
        """
        unknown = self._ids.get(topic_id)
        return unknown is not None and (unknown.vain or (hides and unknown.missed is not None))

    def withhold(self, client: Client, topic_id: bytes) -> None:
        """Remember a client that uses an id which cannot be named."""
        self.withhold_here(client, topic_id)
        if self.on_withheld is not None:
            self.on_withheld(client, topic_id)

    def withhold_here(self, client: Client, topic_id: bytes, ago: float = 0.0) -> None:
        """Do so in this process alone: another one has found out, so many seconds ``ago``."""
        self._clients[client] = topic_id, self._clock() - ago
        self._clients.move_to_end(client)
        if len(self._clients) > MOST_IDS:
            self._clients.popitem(last=False)

    def withheld_clients(self) -> list[tuple[Client, bytes, float]]:
        """Return the clients that are remembered, which id each used, and how long ago."""
        now = self._clock()
        return [(client, topic_id, now - at) for client, (topic_id, at) in self._clients.items()]

    def withheld(self, client: Client, name: Callable[[bytes], str | None]) -> bool:
        """Whether a client is to name topics by name: the id that it used lately has none."""
        topic_id, at = self._clients.get(client, (b"", -math.inf))
        return self._clock() < at + _WITHHELD and name(topic_id) is None
