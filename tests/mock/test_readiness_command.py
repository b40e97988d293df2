"""`leader-hints readiness` in front of a running proxy."""

import gzip
import json
import socket
import struct
from pathlib import Path

import yaml

from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from tests.cli.commands import leader_hints
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.mock.moving import open_scene


def _ask(port: int, key: int, version: int, body: bytes) -> None:
    """Ask as a client that does not say its name, and wait for the answer."""
    frame = struct.pack(">hhih", key, version, 1, 3) + b"old" + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(struct.pack(">i", len(frame)) + frame)
        assert client.recv(4)


def test_a_client_that_asks_too_old_a_version_is_named(tmp_path: Path) -> None:
    port, nowhere = free_ports(2)
    with (
        MockCluster(1, {"t": 1}, BEFORE_HINTS) as cluster,
        ProxyProcess([(("127.0.0.1", port), cluster.brokers[1])], tmp_path / "log") as proxy,
    ):
        admin = ("--admin", proxy.admin.partition("//")[2])
        nobody = leader_hints("readiness", *admin)
        assert nobody.returncode == 0
        assert nobody.stdout.startswith("No client has been seen yet.\n\nOf the proxies: ")

        # Metadata of all topics, then ListOffsets of none.
        _ask(port, 3, 1, struct.pack(">i", -1))
        part = leader_hints("readiness", *admin)
        assert part.returncode == 0
        assert part.stdout.startswith("seen in part")
        _ask(port, 2, 0, struct.pack(">ii", -1, 0))

        done = leader_hints("readiness", *admin)
        assert (done.returncode, done.stderr) == (1, "")
        lines = done.stdout.splitlines()
        assert lines[:3] == [
            "will be refused (1)",
            "  software that does not say its name, client id old",
            "    from 127.0.0.1",
        ]
        assert lines[3].startswith("    asked last on 20")
        assert lines[4] == "    asks ListOffsets 0; brokers of 4.0 and newer take 1 and newer"
        later = leader_hints("readiness", *admin, "--since", "9999-12-31")
        assert later.returncode == 0
        assert later.stdout.startswith("No client has been seen yet.\n")
        assert "have asked nothing since 9999-12-31" in later.stdout
        both = leader_hints("readiness", *admin, "--admin", f"127.0.0.1:{nowhere}", "--json")
        assert both.returncode == 1
        assert both.stderr.startswith(f"leader-hints: no proxy at 127.0.0.1:{nowhere}: ")
        (client,) = json.loads(both.stdout)["clients"]
        assert client["refused"] == [
            {"api": "ListOffsets", "version": 0, "oldest": 1, "release": "4.0"}
        ]
        assert client["releases"] == {"3.7": "ready", "4.0": "refused", "4.1": "refused"}


def test_clients_of_today_are_ready(tmp_path: Path) -> None:
    with open_scene(tmp_path) as scene:
        scene.produce_on_the_move()
        admin = scene.proxy.admin.partition("//")[2]
        done = leader_hints("readiness", "--admin", admin, "--json")

        assert (done.returncode, done.stderr) == (0, "")
        clients = json.loads(done.stdout)["clients"]
        assert {client["verdict"] for client in clients} == {"ready"}
        assert all(client["software"] for client in clients)


def test_journals_say_the_same_as_the_proxies_did(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    config = tmp_path / "proxy.yaml"
    config.write_text(yaml.safe_dump({"journal": {"kind": "files", "path": str(folder)}}))
    with open_scene(tmp_path, arguments=("--config", str(config))) as scene:
        scene.produce_on_the_move()
        admin = scene.proxy.admin.partition("//")[2]
        live = json.loads(leader_hints("readiness", "--admin", admin, "--json").stdout)
    done = leader_hints("readiness", "--journal", str(folder), "--json")

    assert (done.returncode, done.stderr) == (0, "")
    clients = json.loads(done.stdout)["clients"]
    # A client may have stopped after it was asked for.
    assert [client for client in clients if client in live["clients"]] == live["clients"]
    (file,) = folder.glob("*.jsonl")
    piped = leader_hints("readiness", "--journal", "-", "--json", given=file.read_text())
    assert piped.stdout == done.stdout
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert leader_hints("readiness", "--journal", str(packed), "--json").stdout == done.stdout


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    nowhere, broken = tmp_path / "nowhere", tmp_path / "broken.jsonl.gz"
    broken.write_bytes(b"no gzip")
    for path, reason in (
        (nowhere, "there is no such file or folder"),
        (tmp_path / ".", "Not a gzipped file"),
    ):
        done = leader_hints("readiness", "--journal", str(path))
        assert done.returncode == 1
        assert reason in done.stderr
    assert leader_hints("readiness").returncode == 2
