"""Which versions of each API clients ask: what says if a newer broker will still serve them.

Tested in ``tests/core/versions/test_asked_versions.py``.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Self

from leader_hints.apis.keys import NEWEST, ApiKey
from leader_hints.core.events import ClientAsked

#: Clients of which a route keeps the versions by name: of more, those that asked last. Those of all
#: others are kept together.
_MOST: Final = 500
#: Addresses, and principals, of one client; and letters of each.
_MOST_ORIGINS: Final = 5
_LONGEST_ADDRESS: Final = 45  # of one of IPv6
_LONGEST_PRINCIPAL: Final = 255
#: APIs in one event: the journal cuts texts.
_MOST_APIS: Final = 24
#: In place of a name, for the clients beyond that; and behind addresses, if there are more.
OTHERS: Final = "(others)"


class ClientName(NamedTuple):
    """``software``: as name/version, "" if it does not say; ``client_id``: "" if it gives none."""

    software: str
    client_id: str

    @classmethod
    def from_journal(cls, software: str, version: str, client_id: str) -> Self:
        """Return it from the journal's columns, which have name and version apart."""
        says = bool(version) or software not in ("", OTHERS)
        return cls(f"{software}/{version}" if says else software, client_id)


_OTHERS: Final = ClientName(OTHERS, OTHERS)


class Origin(NamedTuple):
    """Where a link comes from: host, and the subject of its certificate, as far as is known."""

    address: str = ""
    principal: str = ""


#: Nothing is known of it.
NOWHERE: Final = Origin()


class Asked:
    """What one client has asked.

    ``versions``: the oldest and the newest by API key; ``of_day``: those of the day. ``last_day``:
    on which it asked last. ``addresses``, ``principals``: the first few that it came from, and
    "(others)" if there were more.
    """

    __slots__ = ("_addresses", "_principals", "last_day", "of_day", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, tuple[int, int]] = {}
        self.of_day: dict[int, tuple[int, int]] = {}
        self.last_day = ""
        # As sets that keep their order.
        self._addresses: dict[str, None] = {}
        self._principals: dict[str, None] = {}

    @property
    def addresses(self) -> tuple[str, ...]:
        """See there."""
        return tuple(self._addresses)

    @property
    def principals(self) -> tuple[str, ...]:
        """See there."""
        return tuple(self._principals)

    def note(self, key: int, version: int, origin: Origin) -> bool:
        """Take it that it has asked this; return whether that says more than before on the day."""
        more = _widen(self.of_day, key, version)
        _widen(self.versions, key, version)
        came = _add(self._addresses, origin.address[:_LONGEST_ADDRESS])
        was = _add(self._principals, origin.principal[:_LONGEST_PRINCIPAL])
        return more or came or was

    def absorb(self, other: "Asked") -> None:
        """Take what another client has asked."""
        for mine, theirs in ((self.versions, other.versions), (self.of_day, other.of_day)):
            for key, versions in theirs.items():
                for version in versions:
                    _widen(mine, key, version)
        for address in other.addresses:
            _add(self._addresses, address)
        for principal in other.principals:
            _add(self._principals, principal)
        self.last_day = max(self.last_day, other.last_day)


def _widen(versions: dict[int, tuple[int, int]], key: int, version: int) -> bool:
    known = versions.get(key)
    oldest, newest = known or (version, version)
    versions[key] = min(oldest, version), max(newest, version)
    return versions[key] != known


def _add(to: dict[str, None], origin: str) -> bool:
    if not origin or origin in to or OTHERS in to:
        return False
    to[origin if len(to) < _MOST_ORIGINS else OTHERS] = None
    return True


class AskedVersions:
    """The oldest and the newest version of each API that each client has asked.

    ApiVersions is not among them: a broker answers any version of it (KIP-511). ``day``: that of
    today, as 2026-01-31; "" before the first has begun.
    """

    __slots__ = ("_clients", "_earlier", "_unreported", "day")

    def __init__(self) -> None:
        self.day = ""
        #: Those that have asked last are last.
        self._clients: dict[ClientName, Asked] = {}
        #: Of which more is known than was reported; in that order.
        self._unreported: dict[ClientName, None] = {}
        #: What other processes have noted on this day, and on an earlier one by their clocks.
        self._earlier: dict[ClientName, None] = {}

    def note(
        self, software: str, client_id: str, key: int, version: int, origin: Origin = NOWHERE
    ) -> None:
        """Take it that a broker has answered such a request of a client."""
        self._note(software, client_id, key, version, origin)

    def note_of(
        self, day: str, software: str, client_id: str, key: int, version: int, origin: Origin
    ) -> None:
        """Take it from another process, which notes this once in a day.

        ``day``: by its clock. It may be the quicker one to see that a day has begun, or that the
        clock was set back.
        """
        if day > self.day:
            self.begin_day(day)
        name = self._note(software, client_id, key, version, origin)
        if day < self.day and name is not None:
            self._earlier[name] = None

    def _note(
        self, software: str, client_id: str, key: int, version: int, origin: Origin
    ) -> ClientName | None:
        """Do so; return under which name, ``None`` where it is not noted."""
        if key == ApiKey.API_VERSIONS or not 0 <= version <= NEWEST.get(key, -1):
            return None
        name = ClientName(software, client_id)
        if name not in self._clients and len(self._clients) >= _MOST and not self._made_room():
            # What is asked by one of them must not go unseen.
            name = _OTHERS
        asked = self._clients[name] = self._clients.pop(name, Asked())
        asked.last_day = self.day
        if asked.note(key, version, origin):
            self._unreported[name] = None
        return name

    def _made_room(self) -> bool:
        """Put the client that asked last before all others to these, if that was not today: many
        clients have another id each time they start. Return whether there was one.
        """
        name = next(name for name in self._clients if name != _OTHERS)
        if self._clients[name].last_day == self.day:
            return False
        self._clients.setdefault(_OTHERS, Asked()).absorb(self._clients.pop(name))
        if name in self._unreported:
            del self._unreported[name]
            self._unreported[_OTHERS] = None
        return True

    def __iter__(self) -> Iterator[tuple[ClientName, Asked]]:
        """Iterate over the clients."""
        return iter([*self._clients.items()])

    def begin_day(self, day: str) -> bool:
        """Take it that it is this day, in UTC; return whether links must note again what they have
        noted.

        A client is reported on each day on which it asks something, with what it asks then: so it
        is seen when clients were upgraded. What was not reported of the day before counts as of
        this one. An earlier day begins as well: the clock was ahead, perhaps by years.
        """
        if day == self.day:
            return False
        before, self.day = self.day, day
        if day < before:
            self._unreported |= {name: None for name in self._earlier if name in self._clients}
        self._earlier.clear()
        for name, asked in self._clients.items():
            if not before or asked.last_day > day:
                asked.last_day = day
            if before and name not in self._unreported:
                asked.of_day.clear()
        return bool(before)

    def changes(self, route: str) -> Iterator[Sequence[ClientAsked]]:
        """Iterate over the clients of which more is known of the day than was reported, and take
        them as reported. ``route``: its name.
        """
        while self._unreported:
            name = next(iter(self._unreported))
            del self._unreported[name]
            asked = self._clients[name]
            versions = [(key, *asked.of_day[key]) for key in sorted(asked.of_day)]
            yield [
                ClientAsked(
                    route=route,
                    client_id=name.client_id,
                    software=name.software,
                    asked=tuple(versions[first : first + _MOST_APIS]),
                    addresses=asked.addresses,
                    principals=asked.principals,
                )
                for first in range(0, len(versions), _MOST_APIS)
            ]
