"""Entrance: the flags for connecting to the brokers of a whole cluster.

`leader-hints run` has settings for that, one for each route.

Tested in ``tests/cli/test_local.py``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import click
from pydantic import ValidationError

from leader_hints.cli.options import choice
from leader_hints.cli.refusals import Path, refusals
from leader_hints.errors import ConfigurationError
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.sasl import SaslMechanism

_SECRET: Final = "file:PATH or env:NAME."
_OPTIONS: Final = (
    click.option("--tls", is_flag=True, help="The brokers speak TLS. Clients speak none with us."),
    click.option("--tls-ca", metavar="FILE", help="Roots of the brokers' certificates, as PEM."),
    click.option("--tls-certificate", metavar="FILE", help="What to show brokers, as PEM."),
    click.option("--tls-key", metavar="FILE", help="Its key, where it is not in the same file."),
    click.option("--tls-key-password", metavar="SECRET", help=f"Of the key: {_SECRET}"),
    click.option(
        "--tls-server-name", metavar="NAME", help="In brokers' certificates. Default: their host."
    ),
    click.option(
        "--sasl",
        "sasl_mechanism",
        metavar=choice(SaslMechanism),
        help="How the proxy's own connections authenticate; clients do so themselves.",
    ),
    click.option("--sasl-username", metavar="NAME", help="Of the proxy, for PLAIN and SCRAM."),
    click.option("--sasl-password", metavar="SECRET", help=f"For PLAIN and SCRAM: {_SECRET}"),
    click.option("--sasl-token", metavar="SECRET", help=f"For OAUTHBEARER: {_SECRET}"),
    click.option(
        "--sasl-token-endpoint", metavar="URL", help="For OAUTHBEARER: where tokens are fetched."
    ),
    click.option(
        "--sasl-token-endpoint-ca", metavar="FILE", help="Roots of its certificate, as PEM."
    ),
    click.option("--sasl-client-id", metavar="ID", help="By which the endpoint knows the proxy."),
    click.option("--sasl-client-secret", metavar="SECRET", help=f"For the endpoint: {_SECRET}"),
    click.option("--sasl-scope", metavar="TEXT", help="What tokens are asked for."),
    click.option("--sasl-principal", metavar="NAME", help="Of the proxy, for GSSAPI."),
    click.option("--sasl-keytab", metavar="FILE", help="Its keys, for GSSAPI."),
    click.option("--sasl-ticket-cache", metavar="CACHE", help="Or its tickets, for GSSAPI."),
    click.option(
        "--sasl-service-name", metavar="NAME", help="Of the brokers' principals. Default: kafka."
    ),
)
#: By the names of the flags' values.
_PATHS: Final[Mapping[str, Path]] = {
    "tls_ca": ("upstream_tls", "ca"),
    "tls_certificate": ("upstream_tls", "certificate"),
    "tls_key": ("upstream_tls", "key"),
    "tls_key_password": ("upstream_tls", "key_password"),
    "tls_server_name": ("upstream_tls", "server_name"),
    "sasl_mechanism": ("sasl", "mechanism"),
    "sasl_username": ("sasl", "username"),
    "sasl_password": ("sasl", "password"),
    "sasl_token": ("sasl", "token"),
    "sasl_token_endpoint": ("sasl", "token_endpoint"),
    "sasl_token_endpoint_ca": ("sasl", "token_endpoint_ca"),
    "sasl_client_id": ("sasl", "client_id"),
    "sasl_client_secret": ("sasl", "client_secret"),
    "sasl_scope": ("sasl", "scope"),
    "sasl_principal": ("sasl", "principal"),
    "sasl_keytab": ("sasl", "keytab"),
    "sasl_ticket_cache": ("sasl", "ticket_cache"),
    "sasl_service_name": ("sasl", "service_name"),
}
_FLAGS: Final = {"sasl_mechanism": "--sasl"}


def takes_entrance(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these flags. Their values come by the names that :func:`make_local` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_local(
    values: Mapping[str, Any], *, tls: bool = False, **flags: str | None
) -> LocalSettings:
    """Return the settings of a virtual cluster.

    ``values``: by the names of the settings. ``tls`` and ``flags``: those of this module.

    :raises ConfigurationError: a value is not allowed.
    """
    origins: dict[Path, str] = {(key,): f"--{key.removesuffix('s')}" for key in values}
    groups: dict[str, dict[str, Any]] = {"upstream_tls": {"enabled": tls}, "sasl": {}}
    for name, value in flags.items():
        if value is not None:
            group, key = path = _PATHS[name]
            groups[str(group)][str(key)] = value
            origins[path] = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    # Who names a file for TLS means it.
    groups["upstream_tls"]["enabled"] |= len(groups["upstream_tls"]) > 1
    try:
        return LocalSettings.model_validate({**values, **groups})
    except ValidationError as error:
        raise ConfigurationError(*refusals(error, origins, LocalSettings)) from None
