"""What the machine says of itself, against what these tests can see of it."""

import socket
import sys

import pytest

from leader_hints.check import host
from tests.harness.ports import free_ports


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/net/tcp")
def test_connections_to_a_port_are_counted() -> None:
    # Other processes' connections may begin at a port that the kernel picks.
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        before = host.connections_to(port)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        during = host.connections_to(port)
        for client in clients:
            client.close()

    # A socket that listens is no connection.
    assert (before, during) == (0, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/net/tcp")
@pytest.mark.parametrize(
    ("family", "loopback", "shown"),
    [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]")],
)
def test_an_outgoing_connection_that_has_a_port_is_found(
    family: socket.AddressFamily, loopback: str, shown: str
) -> None:
    (port,) = free_ports(1)
    with (
        socket.create_server((loopback, 0), family=family) as server,
        socket.socket(family) as client,
    ):
        far = server.getsockname()[1]
        assert host.connection_from(port) is None
        client.bind((loopback, port))
        client.connect((loopback, far))
        assert host.connection_from(port) == f"{shown}:{far}"
        # The same connection's other end is at a port that something listens on.
        assert host.connection_from(far) is None


@pytest.mark.parametrize(
    ("address", "here"), [("127.0.0.1", True), ("203.0.113.1", False), ("2001:db8::1", False)]
)
def test_addresses_of_this_machine(address: str, here: bool) -> None:
    assert host.is_here(address) is here


def test_the_address_from_which_others_see_this_machine() -> None:
    assert host.address_towards("127.0.0.1") == "127.0.0.1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_the_clock_is_read_where_it_stands() -> None:
    clock = host.clock()

    # The kernel lets the error grow to 16 s and no further: a field read at a wrong place is not
    # in those bounds.
    assert clock is not None
    assert 0 <= clock.error_ms <= 16_000
