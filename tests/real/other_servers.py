"""What else may stand at an address where a broker should."""

import contextlib
import http.server
import itertools
import socket
import threading
from collections.abc import Iterator, Sequence

from tests.harness.connection import Address
from tests.harness.relay import Relay


class Balancer(Relay):
    """A load balancer: each connection goes to the next of several brokers."""

    def __init__(self, listen: Address, upstreams: Sequence[Address]) -> None:
        super().__init__(listen, upstreams[0])
        self._turns = itertools.cycle(upstreams)

    def target(self) -> Address:
        """The next broker."""
        return next(self._turns)


class _Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""


@contextlib.contextmanager
def http_server(address: Address) -> Iterator[None]:
    """An HTTP server."""
    with http.server.ThreadingHTTPServer(address, _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def silent_server(address: Address) -> Iterator[None]:
    """Takes connections and never says a word."""
    with socket.create_server(address):
        yield
