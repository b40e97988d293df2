"""Security: TLS, SASL and the PROXY protocol of all routes, as their settings say.

Tested in ``tests/net/tls/test_tls.py``.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import trio

from leader_hints.core.events import CertificatesRefused, CertificatesReloaded, Event
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.errors import ConfigurationError
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.clients.handshake import Handshake
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.sasl import SaslSettings
from leader_hints.settings.tls import BrokerTlsSettings, ClientTlsSettings

#: Seconds between two looks whether files have changed.
LOOK_SECONDS = 10.0
#: Seconds in which all of them must be looked at and read.
_PATIENCE = 60.0
_HANG = f"its files were not read within {_PATIENCE:g} s; their disk may hang"


class Security:
    """The handshakes and connectors of routes, by the routes' names.

    ``decrypts``: some socket of the pump's speaks TLS.
    """

    def __init__(self, routes: Sequence[RouteSettings], handshake_seconds: float) -> None:
        """``handshake_seconds``: seconds for all that a client must do before its first request.

        :raises ConfigurationError: a certificate, key or root cannot be used.
        """
        self._handshake_seconds = handshake_seconds
        self._files: list[tuple[str, str, TlsFiles]] = []
        self._credentials: list[Credentials] = []
        self.handshakes: dict[str, Handshake] = {}
        self.connectors: dict[str, Connectors] = {}
        for route in routes:
            self.add(route)
        self.decrypts = any(
            route.client_tls.mode == "terminate" or route.upstream_tls.enabled for route in routes
        )

    def add(self, route: RouteSettings) -> None:
        """Make the handshake and the connectors of one more route.

        :raises ConfigurationError: a certificate, key or root cannot be used, or a library is
            missing.
        """
        files = {group: _read(route, group, settings) for group, settings in _groups(route)}
        try:
            credentials = _credentials(route.sasl)
        except ConfigurationError as error:
            raise ConfigurationError(f"route {route.name}: sasl: {error}") from None
        self._files += [(route.name, group, read) for group, read in files.items()]
        if credentials is not None:
            self._credentials.append(credentials)
        self.handshakes[route.name] = Handshake(
            files.get("client_tls"),
            proxy_protocol=route.proxy_protocol,
            seconds=self._handshake_seconds,
        )
        self.connectors[route.name] = Connectors(
            Connector(
                files.get("upstream_tls"),
                route.upstream_tls.server_name,
                credentials,
                principal_host=route.sasl.server_name,
            ),
            Connector(files.get("peer_tls"), route.peer_tls.server_name, credentials),
        )

    def certificates(self) -> Iterator[tuple[str, str, float | None]]:
        """Iterate over route, group of settings and when its certificate expires, if it has one."""
        for route, group, files in self._files:
            yield route, group, files.expires

    def share(self, of: str, route: str) -> None:
        """Give one more route the handshake and the connectors of another. It reads nothing."""
        self.handshakes[route], self.connectors[route] = self.handshakes[of], self.connectors[of]

    async def reload(self, *, all_of_them: bool = False) -> list[Event]:
        """Read again the files that have changed, or all; return what came of it.

        Links go on with what they began with. Where new files are not right the old ones hold.
        Abandoned when it is cancelled, or takes too long: a disk that hangs must neither keep the
        process from ending, nor new files from being read for ever. Those that hang are read again
        when they do no longer, or with all. With all, secrets that
        hang are read again, too.
        """
        if all_of_them:
            for credentials in self._credentials:
                credentials.renew_threads()
        reading = _Reading()
        with trio.move_on_after(_PATIENCE):
            await trio.to_thread.run_sync(
                self._reload,
                reading,
                all_of_them,
                abandon_on_cancel=True,
                # Not one of those that look-ups of names may have all of, which hang.
                limiter=trio.CapacityLimiter(1),
            )
        return reading.give_up()

    def _reload(self, reading: "_Reading", all_of_them: bool) -> None:
        for route, group, files in self._files:
            if files.hangs and not all_of_them:
                continue
            if not reading.goes_on(route, group, files):
                return
            # What has changed is noted, whether or not that was the question. Files that could not
            # be read may be readable later without a change: permissions, descriptors.
            news, before = files.changed() or all_of_them, files.refused
            if not news and not before:
                continue
            try:
                files.reload()
            except ConfigurationError as error:
                if news or str(error) != before:
                    event = CertificatesRefused(route=route, group=group, reason=str(error))
                    reading.events.append(event)
            else:
                reading.events.append(CertificatesReloaded(route=route, group=group))
            finally:
                # Whatever became of an attempt that hung.
                files.hangs = False
        reading.is_over()


class _Reading:
    """One look at all files, in a thread. ``events``: what came of it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._lock = threading.Lock()
        self._at: tuple[str, str, TlsFiles] | None = None
        self._given_up = False

    def goes_on(self, route: str, group: str, files: TlsFiles) -> bool:
        """Whether the next files are still to be read."""
        with self._lock:
            if not self._given_up:
                self._at = route, group, files
                return True
        self.is_over()
        return False

    def is_over(self) -> None:
        """Note that nothing is read any more; what had hung is read again."""
        with self._lock:
            if self._given_up and self._at is not None:
                _, _, files = self._at
                files.hangs, files.refused = False, _HANG
            self._at = None

    def give_up(self) -> list[Event]:
        """Return what came of it so far; where it is not over, some files hang."""
        with self._lock:
            if self._at is None:
                return self.events
            self._given_up = True
            route, group, files = self._at
            files.hangs = True
        return [*self.events, CertificatesRefused(route=route, group=group, reason=_HANG)]


def tls_problems(routes: Sequence[RouteSettings]) -> Iterator[ConfigurationError]:
    """Iterate over what of the routes' TLS files cannot be used, for each group of settings."""
    for route in routes:
        for group, settings in _groups(route):
            try:
                _read(route, group, settings)
            except ConfigurationError as error:
                yield error


def _groups(route: RouteSettings) -> Iterator[tuple[str, ClientTlsSettings | BrokerTlsSettings]]:
    """The groups of settings of a route that make it use TLS."""
    if route.client_tls.mode == "terminate":
        yield "client_tls", route.client_tls
    if route.upstream_tls.enabled:
        yield "upstream_tls", route.upstream_tls
    if route.peer_tls.enabled:
        yield "peer_tls", route.peer_tls


def _read(
    route: RouteSettings, group: str, settings: ClientTlsSettings | BrokerTlsSettings
) -> TlsFiles:
    try:
        return TlsFiles(settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"route {route.name}: {group}: {error}") from None


def make_connector(tls: BrokerTlsSettings, sasl: SaslSettings) -> Connector:
    """Return the way in to brokers that are no route's yet.

    :raises ConfigurationError: a certificate, key or root cannot be used, or a library is missing.
    """
    files = TlsFiles(tls) if tls.enabled else None
    return Connector(files, tls.server_name, _credentials(sasl), principal_host=sasl.server_name)


def _credentials(sasl: SaslSettings) -> Credentials | None:
    return Credentials(sasl) if sasl.mechanism != "none" else None


def make_route(settings: RouteSettings, mode: Mode, config: RouteConfig) -> Route:
    """Return the route of ``settings``, of whose broker nothing is known yet."""
    # TLS that is relayed cannot be read, and its broker cannot be asked without TLS.
    if settings.client_tls.mode == "pass":
        return Route(settings.name, Mode.OFF, replace(config, synthesize=False, relays_tls=True))
    return Route(settings.name, mode, config)
