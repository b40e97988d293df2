"""Brokers with more listeners than the harness gives them, each set up in a way of its own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.cluster import HOST
from tests.harness.connection import Address
from tests.harness.ports import free_ports

_PASSWORD = "changeit"


class Listener(NamedTuple):
    """A listener of one broker: where it is, and what it tells clients."""

    name: str
    bound: Address
    advertised: Address
    protocol: str = "PLAINTEXT"


def free_address() -> Address:
    """A loopback address where nobody listens."""
    return HOST, free_ports(1)[0]


def add_listeners(folder: Path, node: int, listeners: Sequence[Listener]) -> None:
    """Add listeners to the settings of a broker that has not been started."""
    file = folder / f"broker-{node}.properties"
    settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
    for listener in listeners:
        (host, port), (told_host, told_port) = listener.bound, listener.advertised
        for key, value in (
            ("listeners", f"{listener.name}://{host}:{port}"),
            ("advertised.listeners", f"{listener.name}://{told_host}:{told_port}"),
            ("listener.security.protocol.map", f"{listener.name}:{listener.protocol}"),
        ):
            settings[key] += f",{value}"
        if listener.protocol == "SSL":
            prefix = f"listener.name.{listener.name.lower()}.ssl"
            settings |= {
                f"{prefix}.keystore.location": str(_key_store(folder, node)),
                f"{prefix}.keystore.password": _PASSWORD,
                f"{prefix}.key.password": _PASSWORD,
                f"{prefix}.keystore.type": "PKCS12",
            }
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _key_store(folder: Path, node: int) -> Path:
    store = folder / f"broker-{node}.p12"
    command = [
        *("keytool", "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-validity", "2"),
        *("-dname", "CN=localhost", "-storetype", "PKCS12"),
        *("-keystore", str(store), "-storepass", _PASSWORD),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return store
