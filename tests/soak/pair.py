"""Two brokers between which the leader of one partition moves."""

import socket
from collections.abc import Callable

import trio

from tests.harness.connection import Address
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.net.messages import NOT_LEADER, PRODUCE, Broker

#: Connections may come faster than they are taken.
_BACKLOG = 4096


class Pair:
    """Node 1 and node 2; ``addresses`` are where they listen, once they do."""

    def __init__(self, advertised: list[Address]) -> None:
        known = [Broker(node, *address) for node, address in enumerate(advertised, 1)]
        self._epoch = 1
        self.brokers = [FakeBroker(node, known, {}) for node in (1, 2)]
        for broker in self.brokers:
            broker.answers[PRODUCE] = self._produced(broker)
        self.move()

    @property
    def leader(self) -> int:
        """The node that leads now."""
        return 1 + self._epoch % 2

    def move(self) -> None:
        """Have the other one lead."""
        self._epoch += 1
        for broker in self.brokers:
            broker.leaders = {"t": [(self.leader, self._epoch)]}
            broker.asked.clear()

    async def listen(self, nursery: trio.Nursery) -> list[Address]:
        """Serve in ``nursery``; return where each listens."""
        addresses = []
        for broker in self.brokers:
            sock = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
            addresses.append(sock.getsockname())
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
            nursery.start_soon(trio.serve_listeners, broker.serve, [listener])
        return addresses

    def _produced(self, broker: FakeBroker) -> Callable[[int, int], bytes]:
        def answer(correlation: int, version: int) -> bytes:
            error = 0 if self.leader == broker.node else NOT_LEADER
            return messages.produce_response(correlation, {0: error})

        return answer
