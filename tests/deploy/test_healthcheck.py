"""The image's health check as a script: where it asks, and what it says where it cannot."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.harness.maven import PYTHONPATH, ROOT

SCRIPT = ROOT / "deploy" / "docker" / "healthcheck.py"


class _Server(HTTPServer):
    asked: str = ""
    status: int = 200


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.asked = self.path
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _admin(host: str, status: int = 200) -> Iterator[_Server]:
    """Something that answers as an admin server does."""

    class Server(_Server):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Server((host, 0), _Handler) as server:
        server.status = status
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _check(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={"PYTHONPATH": PYTHONPATH, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("listens", "admin", "variables"),
    [
        ("127.0.0.1", "127.0.0.1:<port>", {}),
        ("127.0.0.1", "0.0.0.0:<port>", {}),
        ("127.0.0.1", "localhost:<port>", {}),
        ("::1", "[::1]:<port>", {}),
        ("::1", "[::]:<port>", {}),
        ("127.0.0.1", "${NODE_IP}:<port>", {"NODE_IP": "127.0.0.1"}),
        ("::1", "${NODE_IP}:<port>", {"NODE_IP": "::1"}),
        ("127.0.0.1", "127.0.0.1:${ADMIN_PORT}", {"ADMIN_PORT": "<port>"}),
    ],
)
def test_it_asks_where_the_admin_server_is(
    listens: str, admin: str, variables: Mapping[str, str]
) -> None:
    with _admin(listens) as server:
        port = str(server.server_address[1])
        environment = {"LEADER_HINTS_ADMIN": admin, **variables}
        done = _check({name: text.replace("<port>", port) for name, text in environment.items()})

    assert (done.returncode, done.stderr, server.asked) == (0, "", "/livez")


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "LEADER_HINTS_ADMIN is no HOST:PORT"),
        ({"LEADER_HINTS_ADMIN": "localhost"}, "LEADER_HINTS_ADMIN is no HOST:PORT"),
        ({"LEADER_HINTS_ADMIN": "${NODE_IP}:9100"}, "NODE_IP is not set"),
        ({"LEADER_HINTS_ADMIN": "127.0.0.1:1"}, "127.0.0.1:1: "),
    ],
)
def test_what_it_cannot_ask_it_says_in_a_line(environment: Mapping[str, str], says: str) -> None:
    done = _check(environment)

    assert done.returncode == 1
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_loop_that_does_not_turn_is_unhealthy() -> None:
    with _admin("127.0.0.1", 503) as server:
        done = _check({"LEADER_HINTS_ADMIN": f"127.0.0.1:{server.server_address[1]}"})

    assert (done.returncode, "says 503" in done.stderr) == (1, True)
