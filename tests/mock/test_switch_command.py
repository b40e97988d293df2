"""`leader-hints hints` in front of running proxies."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from tests.cli.commands import leader_hints
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess

_TOKEN = "of the test"


@pytest.fixture
def proxies(tmp_path: Path) -> Iterator[list[ProxyProcess]]:
    """Two proxies, with two routes and with one; the second one has a token."""
    (tmp_path / "token").write_text(f"{_TOKEN}\n", encoding="utf-8")
    with MockCluster(3, {"t": 1}, BEFORE_HINTS) as cluster:
        ports = free_ports(3)
        routes = [(("127.0.0.1", port), cluster.brokers[n + 1]) for n, port in enumerate(ports)]
        one = ProxyProcess(routes[:2], tmp_path / "one.log")
        two = ProxyProcess(routes[2:], tmp_path / "two.log")
        two.environment["LEADER_HINTS_ADMIN_TOKEN"] = f"file:{tmp_path}/token"
        with one, two:
            yield [one, two]


def _admins(proxies: list[ProxyProcess]) -> list[str]:
    return [word for proxy in proxies for word in ("--admin", proxy.admin.partition("//")[2])]


def _modes(proxy: ProxyProcess) -> list[str]:
    return [route["hints"] for route in proxy.status()["routes"]]


def test_all_routes_of_several_proxies_are_switched_at_once(
    proxies: list[ProxyProcess], tmp_path: Path
) -> None:
    token = ("--token", f"file:{tmp_path}/token")
    done = leader_hints("hints", "off", *_admins(proxies), *token)

    assert (done.returncode, done.stderr) == (0, "")
    assert [_modes(proxy) for proxy in proxies] == [["off", "off"], ["off"]]
    assert len(done.stdout.splitlines()) == 3
    assert all(line.endswith(": off (before: on)") for line in done.stdout.splitlines())
    shown = leader_hints("hints", *_admins(proxies))
    assert [line.rpartition(": ")[2] for line in shown.stdout.splitlines()] == ["off"] * 3


def test_one_route_is_switched_alone(proxies: list[ProxyProcess]) -> None:
    first = proxies[0].status()["routes"][0]["name"]
    done = leader_hints("hints", "observe", "--route", first, *_admins(proxies))

    assert (done.returncode, done.stderr) == (0, "")
    assert [_modes(proxy) for proxy in proxies] == [["observe", "on"], ["on"]]
    unknown = leader_hints("hints", "off", "--route", "none", *_admins(proxies))
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == "leader-hints: --route: no such route: none\n"


def test_what_cannot_be_switched_is_said_and_the_rest_is_switched(
    proxies: list[ProxyProcess],
) -> None:
    (port,) = free_ports(1)
    nowhere = ["--admin", f"127.0.0.1:{port}"]
    done = leader_hints("hints", "off", *nowhere, *_admins([proxies[1], proxies[0]]))

    assert done.returncode == 1
    assert [_modes(proxy) for proxy in proxies] == [["off", "off"], ["on"]]
    absent, refused = done.stderr.splitlines()
    assert absent.startswith(f"leader-hints: no proxy at 127.0.0.1:{port}: ")
    assert "refuses: a change needs the header Authorization: Bearer TOKEN" in refused
    assert _TOKEN not in done.stderr


def test_a_token_from_a_variable_may_end_with_a_line(proxies: list[ProxyProcess]) -> None:
    """As a Secret of Kubernetes does that `echo` has made."""
    variables = {"TOKEN": f"{_TOKEN}\n"}
    admins = _admins(proxies[1:])
    done = leader_hints("hints", "off", *admins, "--token", "env:TOKEN", variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert _modes(proxies[1]) == ["off"]


def test_an_answer_that_breaks_off_keeps_no_other_proxy_from_its_switch(
    proxies: list[ProxyProcess],
) -> None:
    def answer() -> None:
        with server.accept()[0] as client:
            client.recv(4096)
            client.sendall(b"HTTP/1.1 503 Unavailable\r\nContent-Length: 99\r\n\r\nnot all")

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer)
        answering.start()
        other = f"127.0.0.1:{server.getsockname()[1]}"
        done = leader_hints("hints", "off", "--admin", other, *_admins(proxies[:1]))
        answering.join()
    assert done.returncode == 1
    assert done.stderr == f"leader-hints: the proxy at {other} refuses: Unavailable\n"
    assert _modes(proxies[0]) == ["off", "off"]


def test_the_admin_server_of_the_container_is_found_by_its_variable(
    proxies: list[ProxyProcess],
) -> None:
    port = proxies[0].admin.rpartition(":")[2]
    done = leader_hints("hints", variables={"LEADER_HINTS_ADMIN": f"0.0.0.0:{port}"})
    assert len(done.stdout.splitlines()) == 2
    missing = leader_hints("hints", "off")
    assert missing.returncode == 2
    assert "--admin" in missing.stderr
