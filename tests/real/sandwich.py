"""Relays on both sides of a proxy: what clients and brokers really sent and got."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.cluster import HOST, RealCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyFleet
from tests.harness.relay import Conversation, Gate, Relay, RequestHeader
from tests.harness.waiting import until

API_VERSIONS = 18

Chosen = Callable[[RequestHeader], bool]


class Sandwich:
    """For each broker: relay, proxy, relay. Clients come to the first, at the advertised address.

    A context manager. Relays and routes are keyed by broker id.
    """

    def __init__(
        self,
        cluster: RealCluster,
        folder: Path,
        hints: Hints = "on",
        gate: Gate | None = None,
        *,
        sidecars: bool = False,
        arguments: Sequence[str] = (),
    ) -> None:
        """With ``sidecars`` each broker has a proxy process of its own."""
        count = len(cluster.brokers)
        middle = [(HOST, port) for port in free_ports(count)]
        behind = [(HOST, port) for port in free_ports(count)]
        brokers = cluster.brokers.items()
        self.before = {
            node: Relay(broker.advertised, proxy, gate)
            for (node, broker), proxy in zip(brokers, middle, strict=True)
        }
        self.behind = {
            node: Relay(relay, broker.upstream)
            for (node, broker), relay in zip(brokers, behind, strict=True)
        }
        routes = list(zip(middle, behind, strict=True))
        self.fleet = ProxyFleet.before(
            routes, folder, hints=hints, sidecars=sidecars, arguments=arguments
        )

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            for relay in self.behind.values():
                started.enter_context(relay)
            started.enter_context(self.fleet)
            for relay in self.before.values():
                started.enter_context(relay)
            self._started = started.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.__exit__(kind, error, trace)

    def requests(self, node: int, chosen: Chosen) -> int:
        """How many requests of a kind have come from clients for a broker."""
        return sum(map(chosen, self.before[node].requests()))

    def wait_unchanged(self, chosen: Callable[[Conversation], bool], except_api: int = -1) -> int:
        """Wait until all bytes of the chosen client connections are found again at the brokers.

        In both directions, byte for byte, but for the responses of one API if it is named.
        Returns how many connections those were.
        """
        compared = 0
        for node, relay in self.before.items():
            talks = [talk for talk in relay.conversations if talk.up and chosen(talk)]
            for talk in talks:
                until(
                    lambda n=node, t=talk: self._twin(n, t, except_api),  # type: ignore[misc]
                    f"the twin of a connection to broker {node}: {talk.requests()[:5]}",
                )
            compared += len(talks)
        return compared

    def _twin(self, node: int, talk: Conversation, except_api: int) -> bool:
        wanted = _Bytes(talk, except_api)
        return any(
            wanted.begins(_Bytes(other, except_api)) for other in self.behind[node].conversations
        )


class _Bytes:
    """The bytes of a conversation, without the bodies of one API's responses."""

    def __init__(self, talk: Conversation, except_api: int) -> None:
        self.up = bytes(talk.up)
        self.down = bytes(talk.down)
        if except_api >= 0:
            self.down = b"".join(
                frame for request, frame in talk.responses() if request.api_key != except_api
            )

    def begins(self, other: "_Bytes") -> bool:
        """Whether the other side saw these, and perhaps more that is on its way or too late."""
        return other.up.startswith(self.up) and other.down.startswith(self.down)


def of_client(name: str) -> Callable[[Conversation], bool]:
    """Chooses the connections of one client."""
    return lambda talk: any(request.client_id == name for request in talk.requests())


def whole_responses(relay: Relay) -> list[tuple[RequestHeader, bytes]]:
    """All whole responses that clients got through a relay."""
    return [answer for talk in list(relay.conversations) for answer in talk.responses()]


def stream_of(talks: Sequence[Conversation]) -> bytes:
    """All bytes towards clients."""
    return b"".join(bytes(talk.down) for talk in talks)
