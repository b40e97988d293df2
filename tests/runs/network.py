"""Networks: a load balancer in front of the proxy, IPv6, host names, two proxies in a row."""

import contextlib
import json
import shutil
import socket
from collections.abc import Iterator, Mapping

from tests.harness import processes
from tests.harness.cluster import HOST
from tests.harness.connection import Address, joined
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyFleet, ProxyProcess
from tests.harness.relay import Relay
from tests.harness.waiting import until
from tests.runs.place import Figures, Place, carry, hints

#: Where HAProxy's own connections come from, which is not where its clients are.
_BALANCER = "127.0.0.9"
_HAPROXY = """\
defaults
    mode tcp
    timeout connect 10s
    timeout client 10m
    timeout server 10m
"""
_LISTEN = """
listen broker-{node}
    bind {listen}
    server proxy {proxy} send-proxy-v2 source {balancer}
"""


def missing_haproxy() -> str | None:
    """Say that HAProxy is missing if it is; None where it is there."""
    return "this needs Debian's package haproxy" if shutil.which("haproxy") is None else None


def behind_haproxy(place: Place) -> Figures:
    """HAProxy in front of it, with ``send-proxy-v2``: the proxy knows the clients' addresses."""
    brokers = place.cluster.brokers
    middle = dict(zip(brokers, [(HOST, port) for port in free_ports(len(brokers))], strict=True))
    proxy = ProxyProcess(
        [(middle[node], broker.upstream) for node, broker in brokers.items()],
        place.folder / "proxy.log",
        security=[{"proxy_protocol": True}] * len(brokers),
    )
    with proxy, _haproxy(place, middle):
        figures = carry(place, "haproxy")
        clients = json.loads(proxy.get("/clients"))["clients"]
        hosts = {host for client in clients for host in client["addresses"]}
        assert hosts == {HOST}, f"clients come from {hosts}"
        return {**figures, **hints(ProxyFleet([proxy]))}


@contextlib.contextmanager
def _haproxy(place: Place, proxies: Mapping[int, Address]) -> Iterator[None]:
    listens = [broker.advertised for broker in place.cluster.brokers.values()]
    sections = [
        _LISTEN.format(
            node=node, listen=joined(listen), proxy=joined(proxies[node]), balancer=_BALANCER
        )
        for node, listen in zip(proxies, listens, strict=True)
    ]
    file = place.folder / "haproxy.cfg"
    file.write_text(_HAPROXY + "".join(sections))
    process = processes.start(
        ["haproxy", "-db", "-f", str(file)], output=place.folder / "haproxy.log"
    )
    try:
        until(lambda: all(map(_listens, listens)), "HAProxy listens")
        yield
    finally:
        processes.end(process)


def _listens(address: Address) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def over_ipv6(place: Place) -> Figures:
    """Clients come to the proxy, and the proxy to its broker, by IPv6."""
    nodes = place.cluster.brokers
    listens = [("::1", port) for port in free_ports(len(nodes))]
    upstreams = [("::1", port) for port in free_ports(len(nodes))]
    with contextlib.ExitStack() as stack:
        # The brokers themselves are reached by IPv4.
        for upstream, broker in zip(upstreams, nodes.values(), strict=True):
            stack.enter_context(Relay(upstream, broker.upstream))
        return _advertised(place, "ipv6", listens, upstreams)


def by_name(place: Place) -> Figures:
    """Listener, upstream and what brokers advertise are host names."""
    nodes = place.cluster.brokers
    listens = [("localhost", port) for port in free_ports(len(nodes))]
    upstreams = [("localhost", broker.upstream[1]) for broker in nodes.values()]
    return _advertised(place, "names", listens, upstreams)


def _advertised(
    place: Place, label: str, listens: list[Address], upstreams: list[Address]
) -> Figures:
    """Carry records through proxies at other addresses, which brokers advertise meanwhile."""
    brokers = place.cluster.brokers
    routes = list(zip(listens, upstreams, strict=True))
    with contextlib.ExitStack() as stack:
        fleet = ProxyFleet.before(routes, place.folder / "proxies", sidecars=True)
        stack.enter_context(fleet)
        for (node, broker), listen in zip(brokers.items(), listens, strict=True):
            stack.callback(place.admin.advertise, node, broker.advertised)
            place.admin.advertise(node, listen)
        figures = carry(place, label, bootstrap=",".join(map(joined, listens)))
        return {**figures, **hints(fleet)}


def chained(place: Place) -> Figures:
    """Two proxies in front of each broker: the one at the broker gives the hints."""
    brokers = place.cluster.brokers.values()
    middle = [(HOST, port) for port in free_ports(len(brokers))]
    at_brokers = [(listen, broker.upstream) for listen, broker in zip(middle, brokers, strict=True)]
    in_front = [(broker.advertised, listen) for listen, broker in zip(middle, brokers, strict=True)]
    with (
        ProxyFleet.before(at_brokers, place.folder / "at-brokers") as back,
        ProxyFleet.before(in_front, place.folder / "in-front") as front,
    ):
        figures = carry(place, "chain")
        (process,) = front.processes
        for route in process.status()["routes"]:
            assert route["upstream"]["hints_behind"], f"{route['name']} is taken for a broker's"
        passed = {f"{name} in front": count for name, count in hints(front).items()}
        return {**figures, **hints(back), **passed}
