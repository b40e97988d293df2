"""Runs clients once, through proxies in front of old brokers or directly at new ones."""

import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from confluent_kafka import Consumer, TopicPartition

from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet, ProxyProcess, Route
from tests.readiness.roster import Client

#: What is there today, and what comes.
BEFORE: Final = "3.6.2"
AFTER: Final = "4.1.1"
#: A client that no broker serves may try for ever.
_SECONDS: Final = 60.0
#: What the programs write and read.
_RECORDS: Final = 3
#: A client may be several to the proxies, such as its producer and its consumer. It is refused if
#: one of them is, and served if one of them was seen to write or read.
_ORDER: Final = ("refused", "ready", "in_part")


@dataclass(frozen=True)
class Outcome:
    """What one client did. ``error``: the last line that it wrote, "" if it has done its work."""

    served: bool
    error: str = ""


def run(clients: Collection[Client], bootstrap: str, log: Path) -> Mapping[str, Outcome]:
    """Have each client write records to a topic of its own and read them again, in a group."""
    outcomes = {client.name: _run(client, bootstrap, log) for client in clients}
    # Some clients only log that offsets cannot be committed.
    for client in clients:
        if outcomes[client.name].served and _committed(client, bootstrap) != _RECORDS:
            outcomes[client.name] = Outcome(served=False, error="it commits no offsets")
    return outcomes


def _committed(client: Client, bootstrap: str) -> int:
    """Return the offset that its group has committed."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": client.name})
    try:
        (found,) = consumer.committed([TopicPartition(topic(client), 0)], timeout=_SECONDS)
    finally:
        consumer.close()
    offset: int = found.offset
    return offset


def topic(client: Client) -> str:
    """The topic of a client."""
    return f"readiness-{client.name}"


def at_old_brokers(
    clients: Collection[Client], folder: Path
) -> tuple[Mapping[str, Outcome], Mapping[str, str]]:
    """Run clients through proxies; return what they did, and the verdict on each.

    The verdict is "unseen" for a client that is not among those of the report. It must be the same
    of the running proxies and, afterwards, of their journals.
    """
    journals = folder / "journals"
    journals.mkdir(parents=True)
    with RealCluster(BEFORE, folder=folder / "before") as cluster:
        _make_topics(cluster, clients)
        routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
        with _proxies(routes, journals, folder / "proxies") as fleet:
            outcomes = run(clients, cluster.bootstrap, folder / "old.log")
            addresses = [
                f"{host}:{port}" for host, port in (p.admin_address for p in fleet.processes)
            ]
            admins = [argument for address in addresses for argument in ("--admin", address)]
            live = _verdicts(clients, *admins)
    later = _verdicts(clients, "--journal", str(journals))
    assert later == live, "journals say something else than the proxies did"
    return outcomes, live


def _proxies(routes: Sequence[Route], journals: Path, folder: Path) -> ProxyFleet:
    """A proxy for each route, with a journal."""
    folder.mkdir(parents=True)
    processes = []
    for number, route in enumerate(routes, 1):
        config = folder / f"proxy-{number}.yaml"
        journal = {"kind": "files", "path": str(journals), "sidecar": f"proxy-{number}"}
        config.write_text(yaml.safe_dump({"journal": journal}), encoding="utf-8")
        log = folder / f"proxy-{number}.log"
        arguments = ("--config", str(config))
        processes.append(ProxyProcess([route], log, hints="on", arguments=arguments))
    return ProxyFleet(processes)


def at_new_brokers(clients: Collection[Client], folder: Path) -> Mapping[str, Outcome]:
    """Run clients directly at brokers of Kafka 4."""
    cluster = RealCluster(AFTER, "kraft", folder=folder / "after")
    for node, broker in cluster.brokers.items():
        cluster.advertise(node, broker.upstream)
    with cluster:
        _make_topics(cluster, clients)
        bootstrap = ",".join(
            f"{host}:{port}" for host, port in (b.upstream for b in cluster.brokers.values())
        )
        return run(clients, bootstrap, folder / "new.log")


def _make_topics(cluster: RealCluster, clients: Collection[Client]) -> None:
    ClusterAdmin(cluster).create_topics({topic(client): [[1, 2, 3]] for client in clients})


def _run(client: Client, bootstrap: str, log: Path) -> Outcome:
    command = [*client.install(), bootstrap, topic(client), client.name, *client.also]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as expired:
        output, code = str(expired.stderr or ""), -1
    else:
        output, code = done.stdout + done.stderr, done.returncode
    with log.open("a", encoding="utf-8") as file:
        file.write(f"== {client.name}: {code}\n{output}\n")
    if code == 0:
        return Outcome(served=True)
    return Outcome(served=False, error=f"no end in {_SECONDS:g} s" if code < 0 else _last(output))


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "no message"


def _verdicts(clients: Collection[Client], *where: str) -> Mapping[str, str]:
    """Ask as an operator does; return the verdict on each client."""
    command = [sys.executable, "-m", "leader_hints.cli.main", "readiness", "--json", *where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [(one["client_id"], one["verdict"]) for one in json.loads(done.stdout)["clients"]]
    return {
        client.name: min(
            (verdict for name, verdict in found if name == client.name),
            key=_ORDER.index,
            default="unseen",
        )
        for client in clients
    }
