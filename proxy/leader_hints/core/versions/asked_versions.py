"""Which versions of each API clients ask: what says if a newer broker will still serve them.

Tested in ``tests/core/versions/test_asked_versions.py``.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from leader_hints.apis.keys import NEWEST, ApiKey

#: Clients of which a route keeps the versions by name; those of all others are kept together.
_MOST: Final = 500
#: In place of a name, for the clients beyond that.
OTHERS: Final = "(others)"


class ClientName(NamedTuple):
    """``software``: as name/version, "" if it does not say; ``client_id``: "" if it gives none."""

    software: str
    client_id: str


class AskedVersions:
    """The oldest and the newest version of each API that each client has asked.

    ApiVersions is not among them: a broker answers any version of it (KIP-511).
    """

    __slots__ = ("_clients",)

    def __init__(self) -> None:
        self._clients: dict[ClientName, dict[int, tuple[int, int]]] = {}

    def note(self, software: str, client_id: str, key: int, version: int) -> None:
        """Take it that a broker has answered such a request of a client."""
        if key == ApiKey.API_VERSIONS or not 0 <= version <= NEWEST.get(key, -1):
            return
        name = ClientName(software, client_id)
        if name not in self._clients and len(self._clients) >= _MOST:
            # What is asked by one of them must not go unseen.
            name = ClientName(OTHERS, OTHERS)
        asked = self._clients.setdefault(name, {})
        oldest, newest = asked.get(key, (version, version))
        asked[key] = min(oldest, version), max(newest, version)

    def __iter__(self) -> Iterator[tuple[ClientName, dict[int, tuple[int, int]]]]:
        """Iterate over the clients: by API key the oldest and the newest version."""
        return iter([*self._clients.items()])
