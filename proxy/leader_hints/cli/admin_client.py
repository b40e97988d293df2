"""Asks the admin servers of running proxies, for commands that change something there.

Tested in ``tests/mock/test_switch_command.py``.
"""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Final

import click

from leader_hints.address import Address
from leader_hints.cli.options import Option
from leader_hints.errors import ConfigurationError, LeaderHintsError

_VARIABLE: Final = "LEADER_HINTS_ADMIN"
_PATIENCE: Final = 10.0
#: Without the HTTP proxies of the environment: to those a loopback address is their own.
_DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SECRETS: Final = ("file:", "env:")


class AdminServerError(LeaderHintsError):
    """A proxy is out of reach, or refuses. ``status``: of HTTP, 0 where there was no answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def proxies_option(*, required: bool = True) -> Option:
    """Return the option for the admin servers of the proxies that a command is about."""
    return click.option(
        "--admin",
        "admins",
        multiple=True,
        required=required,
        envvar=_VARIABLE,
        metavar="HOST:PORT",
        help=f"The admin server of a proxy; give one for each proxy. Default: {_VARIABLE}.",
    )


def token_option() -> Option:
    """Return the option for what an admin server asks of those that change something."""
    return click.option(
        "--token",
        metavar="SECRET",
        help="What the proxy's admin_token is: file:PATH or env:NAME.",
    )


def parse_admin(text: str) -> Address:
    """Read the address of an admin server; one that listens everywhere is asked on this machine.

    :raises ConfigurationError: it is no address.
    """
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise ConfigurationError(f"--admin: {error}") from None
    if address.is_wildcard:
        return Address("::1" if ":" in address.host else "127.0.0.1", address.port)
    return address


def ask(
    address: Address, method: str, path: str, body: bytes | None = None, token: str | None = None
) -> Any:
    """Make a request, and return the JSON of its answer.

    ``token``: where the secret is that goes with it.

    :raises ConfigurationError: there is no such secret.
    :raises AdminServerError: nothing else than an admin server answers, or it refuses.
    """
    request = urllib.request.Request(f"http://{address}{path}", body, method=method)
    if token is not None:
        # Headers are written as Latin-1, which leaves these bytes unchanged.
        secret = _secret(token).strip().encode().decode("latin-1")
        request.add_header("Authorization", f"Bearer {secret}")
    try:
        with _DIRECTLY.open(request, timeout=_PATIENCE) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        reason = f"the proxy at {address} refuses: {_reason(error)}"
        raise AdminServerError(reason, error.code) from None
    except OSError as error:
        raise AdminServerError(f"no proxy at {address}: {error}") from None
    except (http.client.HTTPException, ValueError):
        wrong = f"no proxy at {address}: it answers as no admin server does"
        raise AdminServerError(wrong) from None


def _secret(source: str) -> str:
    if not source.startswith(_SECRETS):
        raise ConfigurationError("--token is ***; allowed: file:PATH or env:NAME")
    # Imported here: most commands need no secret.
    from leader_hints.net.brokers.secret import read_secret

    return read_secret(source)


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        text = error.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        # It broke off.
        return str(error.reason)
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text
