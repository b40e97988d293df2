"""`leader-hints config check`: it finds all that `run` would refuse, and starts nothing."""

import importlib.util
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.cli.commands import leader_hints
from tests.harness.ports import free_ports

_UPSTREAM = "127.0.0.1:9"
_ANY = "127.0.0.1:0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ca.pem, one.pem, one.key, another.key and a password that is empty."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    one, another = (authority.issue_cert(f"{name}.example") for name in ("one", "another"))
    one.cert_chain_pems[0].write_to_path(str(tmp_path / "one.pem"))
    one.private_key_pem.write_to_path(str(tmp_path / "one.key"))
    another.private_key_pem.write_to_path(str(tmp_path / "another.key"))
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    return tmp_path


def _check(
    folder: Path, *arguments: str, listen: str = _ANY, route: Mapping[str, Any] = {}, **more: Any
) -> tuple[int, list[str]]:
    """Return the exit code and the problems of one route with more settings."""
    routes = [{"name": "r", "listen": listen, "upstream": _UPSTREAM, **route}]
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump({"routes": routes, **more}), encoding="utf-8")
    done = leader_hints("config", "check", "--config", str(file), *arguments)
    # What is in force is printed whatever is wrong around it.
    assert yaml.safe_load(done.stdout)["routes"][0]["name"] == "r"
    return done.returncode, done.stderr.splitlines()


def test_files_that_are_right_and_ports_that_are_free(folder: Path) -> None:
    tls = {"certificate": f"{folder}/one.pem", "key": f"{folder}/one.key", "ca": f"{folder}/ca.pem"}
    (folder / "password").write_text("secret\n", encoding="utf-8")
    route = {
        "client_tls": {"mode": "terminate", **tls},
        "upstream_tls": {"enabled": True, **tls},
        "sasl": {
            "mechanism": "SCRAM-SHA-256",
            "username": "u",
            "password": f"file:{folder}/password",
        },
    }
    journal = {"kind": "files", "path": str(folder)}
    before = sorted(folder.iterdir())
    takeover = str(folder / "takeover")
    assert _check(folder, route=route, journal=journal, admin=_ANY, takeover=takeover) == (0, [])
    assert sorted(folder.iterdir()) == [*before, folder / "settings.yaml"]


def test_all_that_is_wrong_is_found_at_once(folder: Path) -> None:
    password = {"mechanism": "PLAIN", "username": "u", "password": f"file:{folder}/empty"}
    route = {
        "client_tls": {
            "mode": "terminate",
            "certificate": f"{folder}/one.pem",
            "key": f"{folder}/another.key",
        },
        "upstream_tls": {"enabled": True, "ca": f"{folder}/none.pem"},
        "peer_tls": {"enabled": True, "ca": f"{folder}/empty"},
        "sasl": password,
    }
    journal = {"kind": "files", "path": f"{folder}/none"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, problems = _check(
            folder,
            route=route,
            journal=journal,
            listen=f"127.0.0.1:{port}",
            admin="192.0.2.1:9100",
            admin_token="env:NO_SUCH_TOKEN",
        )

    assert code == 2
    expected = [
        "admin_token: the environment variable NO_SUCH_TOKEN has no secret",
        f"route r: client_tls: certificate {folder}/one.pem: "
        "the key is not that of the certificate",
        f"route r: upstream_tls: ca {folder}/none.pem: no such file or directory",
        f"route r: peer_tls: ca {folder}/empty: no PEM certificate in it",
        f"route r: sasl: the first line of {folder}/empty is empty; the secret must stand there",
        f"journal.path: {folder}/none is not a directory; create it first",
        f"cannot listen on 127.0.0.1:{port}: address already in use",
        "cannot listen on 192.0.2.1:9100: cannot assign requested address",
    ]
    assert problems == [f"leader-hints: {problem}" for problem in expected]


def test_a_keytab_and_a_client_secret_that_are_missing(folder: Path) -> None:
    endpoint = {
        "mechanism": "OAUTHBEARER",
        "token_endpoint": "https://idp.example/token",
        "client_id": "c",
        "client_secret": f"file:{folder}/none",
    }
    code, problems = _check(folder, route={"sasl": endpoint})
    said = f"cannot read the secret in {folder}/none: No such file or directory"
    assert (code, problems) == (2, [f"leader-hints: route r: sasl: {said}"])

    keytab = {"mechanism": "GSSAPI", "principal": "p", "keytab": f"{folder}/none"}
    code, (problem,) = _check(folder, route={"sasl": keytab})
    # Without the extra it says how to install that.
    said = f"cannot read the keytab {folder}/none: No such file or directory"
    extra = importlib.util.find_spec("gssapi") is None
    assert code == 2
    assert ("needs the extra kerberos: pip install" if extra else said) in problem


def test_what_only_the_proxys_machine_has_can_be_left_out(folder: Path) -> None:
    journal = {"kind": "files", "path": f"{folder}/none"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert _check(folder, "--skip", "ports", listen=listen) == (0, [])
        code, problems = _check(folder, "--skip", "files", listen=listen, journal=journal)
        assert (code, len(problems)) == (1, 1)
        both = ("--skip", "files", "--skip", "ports")
        assert _check(folder, *both, listen=listen, journal=journal) == (0, [])


def test_properties_that_librdkafka_does_not_take(folder: Path) -> None:
    (folder / "properties").write_text("no.such=1\n", encoding="utf-8")
    journal = {"kind": "topic", "bootstrap": _UPSTREAM, "properties_file": f"{folder}/properties"}
    code, (problem,) = _check(folder, journal=journal)
    assert code == 2
    assert "no.such" in problem


def test_an_outgoing_connection_that_has_the_port_is_named(folder: Path) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", far), source_address=("127.0.0.1", port)):
            code, problems = _check(folder, listen=f"127.0.0.1:{port}")
    assert (code, problems) == (
        1,
        [
            f"leader-hints: cannot listen on 127.0.0.1:{port}: address already in use "
            f"(an outgoing connection has this port, to 127.0.0.1:{far})"
        ],
    )


def test_ports_of_a_process_that_hands_them_over_are_not_in_the_way(folder: Path) -> None:
    path = str(folder / "takeover")
    with (
        socket.socket(socket.AF_UNIX) as served,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        served.bind(path)
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert _check(folder, listen=listen, takeover=path) == (0, [])


def test_a_socket_that_a_killed_process_has_left_hides_no_port_that_is_taken(folder: Path) -> None:
    path = str(folder / "takeover")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code, (problem,) = _check(folder, listen=listen, takeover=path)
    assert code == 1
    assert problem.startswith(f"leader-hints: cannot listen on {listen}: address already in use")


def test_a_takeover_whose_folder_is_missing(folder: Path) -> None:
    path = f"{folder}/none/takeover"
    code, (problem,) = _check(folder, takeover=path)
    assert (code, problem) == (
        1,
        f"leader-hints: cannot listen on {path}: no such file or directory",
    )
