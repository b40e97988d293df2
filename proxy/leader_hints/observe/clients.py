"""The clients of a process and the versions that they ask, as one JSON document for `readiness`.

Tested in ``tests/observe/test_clients.py``.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.sasl_handshake import BARE_TOKENS_VERSION
from leader_hints.core.route import Route

#: Of the document.
FORMAT: Final = 1
#: Requests that begin authentication of which the proxy reads nothing.
_BARE_TOKENS: Final = (ApiKey.SASL_HANDSHAKE, BARE_TOKENS_VERSION, BARE_TOKENS_VERSION)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AskedApi(_Model):
    """The versions of one API that a client has asked, and that were answered."""

    key: int = Field(description="Kafka's API key.")
    oldest: int = Field(description="The oldest version.")
    newest: int = Field(description="The newest version.")


class RouteClient(_Model):
    """A client as it calls itself, on one route. Not its links: it may have many."""

    route: str = Field(description="The route's name.")
    software: str = Field(
        description="NAME/VERSION (KIP-511); empty: it does not say; (others): all beyond 500 of a "
        "route, those that asked last long ago first."
    )
    client_id: str = Field(description="Its client id; empty: it gives none.")
    asked: list[AskedApi] = Field(description="By API what it has asked since the start.")
    last_day: str = Field(
        description="The day, in UTC, on which it asked last; empty in the first second."
    )
    addresses: list[str] = Field(
        description="Hosts that it connected from; beyond the first five: (others)."
    )
    principals: list[str] = Field(
        description="Subjects of its certificates, where the proxy asks for them; beyond the first "
        "five: (others)."
    )


class UnreadLinks(_Model):
    """Links of a route on which nothing is read, since their clients authenticate as SaslHandshake
    0 has it: Java clients before 1.0 do."""

    route: str = Field(description="The route's name.")
    links: int = Field(description="How many there were since the start.")


def document(routes: Collection[Route]) -> Iterator[bytes]:
    """Iterate over the pieces of the document, of which none has more than one client."""
    unread = ",".join(one.model_dump_json() for one in _unread(routes))
    yield b'{"format":%d,"unread":[%s],"clients":[' % (FORMAT, unread.encode())
    separator = b""
    for client in _clients(routes):
        yield separator + client.model_dump_json().encode()
        separator = b","
    yield b"]}"


def _unread(routes: Iterable[Route]) -> Iterator[UnreadLinks]:
    for route in routes:
        # By the one cell that such requests have: a route may have hundreds.
        cell = route.traffic.cells.get(_BARE_TOKENS)
        if cell is not None and cell.responses:
            yield UnreadLinks(route=route.name, links=cell.responses)


def _clients(routes: Iterable[Route]) -> Iterator[RouteClient]:
    for route in routes:
        for name, asked in route.asked:
            apis = [
                AskedApi(key=key, oldest=oldest, newest=newest)
                for key, (oldest, newest) in sorted(asked.versions.items())
            ]
            yield RouteClient(
                route=route.name,
                software=name.software,
                client_id=name.client_id,
                asked=apis,
                last_day=asked.last_day,
                addresses=[*asked.addresses],
                principals=[*asked.principals],
            )
