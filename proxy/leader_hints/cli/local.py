"""`leader-hints local`: the proxy before a whole cluster, which is not touched for it."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml
from pydantic import ValidationError

from leader_hints.address import Address, leads_to, overlap
from leader_hints.cli.entrance import make_local, takes_entrance
from leader_hints.cli.options import (
    admin_option,
    config_option,
    hints_option,
    log_format_option,
    log_level_option,
)
from leader_hints.cli.refusals import shown
from leader_hints.cli.sources import load_settings, yaml_problem
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.errors import BrokerError, ConfigurationError, LeaderHintsError
from leader_hints.faults.problems import problems
from leader_hints.faults.scenario import Scenario
from leader_hints.observe.logs import configure_logs
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.settings import Settings

if TYPE_CHECKING:
    from leader_hints.mock.steady import SteadyCluster

_MOST_MOCKS: Final = 100

#: See :class:`leader_hints.local.virtual_cluster.Found`.
Renew = Callable[[], Mapping[int, Address] | None]


@click.command()
@click.option("--bootstrap", metavar="HOST:PORT[,...]", help="Brokers of the cluster.")
@click.option(
    "--cluster",
    metavar="mock:N",
    help="In place of --bootstrap: a mock cluster of N brokers, which ends with this process.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where clients bootstrap; the broker with node id N gets this port + 1 + N. "
    "Default: 127.0.0.1:19092.",
)
@click.option("--advertise", metavar="HOST", help="The host that clients get.")
@takes_entrance
@click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="NODE=PORT",
    help="Another port for a broker. May be given for each.",
)
@click.option(
    "--allow-faults",
    is_flag=True,
    help="Let `leader-hints fault` or --scenario make faults.",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML file with faults that begin and end at given times.",
)
@config_option("YAML file with settings; its routes are not used.")
@hints_option("As for `run`.")
@admin_option()
@log_level_option("As for `run`.")
@log_format_option("As for `run`.")
def local(
    bootstrap: str | None,
    cluster: str | None,
    listen: str | None,
    advertise: str | None,
    ports: Sequence[str],
    allow_faults: bool,
    scenario: Path | None,
    file: Path | None,
    hints: str | None,
    admin: str | None,
    log_level: str | None,
    log_format: str | None,
    **entrance: Any,
) -> None:
    """Run in front of a whole cluster, with one listener for each of its brokers.

    Nothing is changed in the cluster: the brokers' addresses in its answers are rewritten, so that
    clients that bootstrap here stay here. To develop and test clients, and to try hints.
    """
    if bool(bootstrap) is bool(cluster):
        raise ConfigurationError(
            "give --bootstrap HOST:PORT[,HOST:PORT...] for a cluster, or --cluster mock:N for one "
            "of mock brokers; one of the two"
        )
    if scenario is not None and not allow_faults:
        raise ConfigurationError("--scenario makes faults; give --allow-faults too")
    faults = read_scenario(scenario) if scenario is not None else None
    values = {"listen": listen, "advertise": advertise, "ports": dict(_ports(ports))}
    values = {key: value for key, value in values.items() if value}
    flags = {"hints": hints, "admin": admin, "log_level": log_level, "log_format": log_format}
    if bootstrap:
        settings = make_local({**values, "bootstrap": bootstrap.split(",")}, **entrance)
        _serve(settings, file, flags, None, faults, allow_faults=allow_faults)
        return
    if any(entrance.values()):
        raise ConfigurationError("TLS and SASL are for --bootstrap; mock brokers have none")
    # Imported here, since only this needs librdkafka.
    from leader_hints.mock.cluster import MockClusterError
    from leader_hints.mock.steady import SteadyCluster

    size = _mock_size(cluster or "")
    try:
        with SteadyCluster(size) as mock:
            addresses = [Address(*address) for address in mock.brokers.values()]
            settings = make_local({**values, "bootstrap": addresses})
            _serve(settings, file, flags, mock, faults, allow_faults=allow_faults)
    except MockClusterError as error:
        raise LeaderHintsError(str(error)) from None


def _mock_size(text: str) -> int:
    kind, _, size = text.partition(":")
    if kind != "mock" or not size.isdecimal() or not 1 <= int(size) <= _MOST_MOCKS:
        raise ConfigurationError(
            f"--cluster: {shown(text)} is no cluster; allowed: mock:N, N from 1 to {_MOST_MOCKS}"
        )
    return int(size)


def _renewing(mock: "SteadyCluster") -> Renew:
    from leader_hints.mock.cluster import MockClusterError

    def renewed() -> dict[int, Address] | None:
        try:
            brokers = mock.renew()
        except MockClusterError as error:
            raise BrokerError(str(error)) from None
        return None if brokers is None else {n: Address(*at) for n, at in brokers.items()}

    return renewed


class _Control:
    """A :class:`leader_hints.local.mock_pages.MockControl` of a mock cluster."""

    def __init__(self, mock: "SteadyCluster") -> None:
        self._mock = mock

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition."""
        self._done(lambda: self._mock.move_leader(topic, partition, node))

    def set_running(self, node: int, *, running: bool) -> None:
        """Have a broker take connections, or end all and take none."""
        self._done(lambda: self._mock.set_running(node, running=running))

    def _done(self, command: Callable[[], None]) -> None:
        from leader_hints.mock.cluster import MockClusterError

        try:
            command()
        except MockClusterError as error:
            raise BrokerError(str(error)) from None


def _serve(
    local: LocalSettings,
    file: Path | None,
    flags: dict[str, str | None],
    mock: "SteadyCluster | None",
    scenario: Scenario | None,
    *,
    allow_faults: bool,
) -> None:
    """Find the cluster's brokers and serve before them until a signal.

    :raises LeaderHintsError: there is no cluster, or something is not allowed.
    """
    # Imported here, since the other commands need no network code and should answer at once.
    from leader_hints.app import run
    from leader_hints.local.discovery import discover, seek
    from leader_hints.local.host import Found
    from leader_hints.net.tls.route_security import make_connector

    connector = make_connector(local.upstream_tls, local.sasl)
    cluster, brokers = discover(local.bootstrap, connector)
    if scenario is not None:
        _check_routes(scenario, sorted(f"broker-{node}" for node in brokers))
    settings = _settings(local, brokers, file, flags)
    configure_logs(settings.log.least, settings.log.format)
    stage = None
    if allow_faults:
        from leader_hints.faults.injector import FaultInjector

        stage = FaultInjector(scenario)
    renew, control = (None, None) if mock is None else (_renewing(mock), _Control(mock))
    again_at = partial(seek, local.bootstrap, connector) if mock is None else None
    found = Found(local, brokers, renew, stage, control, cluster, again_at)
    again = partial(_settings, local, brokers, file, flags)
    sys.exit(run(settings, found, config=str(file or ""), again=again))


def _check_routes(scenario: Scenario, routes: Sequence[str]) -> None:
    """Find a route that the cluster has not, before the fault is due and does nothing.

    :raises ConfigurationError: there is such a one.
    """
    problems = [
        f"--scenario: at_ms {step.at_ms} begins {name}: no such route: {', '.join(unknown)}; "
        f"there are: {', '.join(routes)}"
        for step in scenario.steps
        for name, fault in step.begin.items()
        if (unknown := sorted(fault.routes.difference(routes)))
    ]
    if problems:
        raise ConfigurationError(*problems)


def read_scenario(file: Path) -> Scenario:
    """Read a scenario.

    :raises ConfigurationError: the file cannot be read, or something in it is not allowed.
    """
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"cannot read {file}: {error}") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # The library raises what Python's own readers of numbers and dates raise.
        raise ConfigurationError(f"{file}{yaml_problem(error)}") from None
    except RecursionError:
        raise ConfigurationError(f"{file}: groups and lists are nested too deeply") from None
    try:
        return Scenario.model_validate(value)
    except ValidationError as error:
        raise ConfigurationError(
            *(f"{file}: {problem}" for problem in problems(error, "scenario"))
        ) from None


def _settings(
    local: LocalSettings,
    brokers: dict[int, Address],
    file: Path | None,
    flags: dict[str, str | None],
) -> Settings:
    ports = BrokerPorts(local.listen.port, local.ports)
    routes = []
    for node, upstream in brokers.items():
        if leads_to(upstream, local.listen):
            raise ConfigurationError(
                f"broker {node} is at {upstream}, which is --listen; give another one, or have the "
                "broker advertise an address that leads to it from here"
            )
        port = ports.port(node)
        if not port:
            raise ConfigurationError(ports.lack(node))
        routes.append(f"{Address(local.listen.host, port)}={upstream}")
    by_key: dict[str, Any] = {key.replace("log_", "log."): value for key, value in flags.items()}
    settings = load_settings({**by_key, "routes": routes}, os.environ, file)
    if settings.admin is not None and overlap(local.listen, settings.admin):
        raise ConfigurationError(
            f"--listen {local.listen} and admin {settings.admin} overlap; give each its own port"
        )
    return settings


def _ports(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    for text in texts:
        node, _, port = text.partition("=")
        if not (node.isdecimal() and port.isdecimal() and 0 < int(port) <= 65535):
            raise ConfigurationError(
                f"--port: {shown(text)} is no port; allowed: NODE=PORT, with ports from 1 to 65535"
            )
        yield int(node), int(port)
