"""Security: TLS, SASL and the PROXY protocol of all routes, as their settings say.

Tested in ``tests/net/tls/test_tls.py``.
"""

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
        self.handshakes: dict[str, Handshake] = {}
        self.connectors: dict[str, Connectors] = {}
        for route in routes:
            self.add(route)
        self.decrypts = any(
            route.client_tls.mode == "terminate" or route.upstream_tls.enabled for route in routes
        )

    def add(self, route: RouteSettings) -> None:
        """Make the handshake and the connectors of one more route.

        :raises ConfigurationError: a certificate, key or root cannot be used.
        """
        terminates = route.client_tls.mode == "terminate"
        tls = self._read(route.name, "client_tls", route.client_tls) if terminates else None
        proxied = route.proxy_protocol
        self.handshakes[route.name] = Handshake(
            tls, proxy_protocol=proxied, seconds=self._handshake_seconds
        )
        self.connectors[route.name] = Connectors(
            self._connector(route, "upstream_tls", route.upstream_tls),
            self._connector(route, "peer_tls", route.peer_tls),
        )

    def certificates(self) -> Iterator[tuple[str, str, float | None]]:
        """Iterate over route, group of settings and when its certificate expires, if it has one."""
        for route, group, files in self._files:
            yield route, group, files.expires

    def share(self, of: str, route: str) -> None:
        """Give one more route the handshake and the connectors of another. It reads nothing."""
        self.handshakes[route], self.connectors[route] = self.handshakes[of], self.connectors[of]

    def _connector(
        self, route: RouteSettings, group: str, settings: BrokerTlsSettings
    ) -> Connector:
        tls = self._read(route.name, group, settings) if settings.enabled else None
        return _connector(tls, settings, route.sasl)

    def _read(
        self, route: str, group: str, settings: ClientTlsSettings | BrokerTlsSettings
    ) -> TlsFiles:
        try:
            files = TlsFiles(settings)
        except ConfigurationError as error:
            raise ConfigurationError(f"route {route}: {group}: {error}") from None
        self._files.append((route, group, files))
        return files

    async def reload(self, *, all_of_them: bool = False) -> list[Event]:
        """Read again the files that have changed, or all; return what came of it.

        Links go on with what they began with. Where new files are not right the old ones hold.
        Abandoned when it is cancelled: a disk that hangs must not keep the process from ending.
        """
        return await trio.to_thread.run_sync(
            lambda: [*self._reload(all_of_them)],
            abandon_on_cancel=True,
            # Not one of those that look-ups of names may have all of, which hang.
            limiter=trio.CapacityLimiter(1),
        )

    def _reload(self, all_of_them: bool) -> Iterator[Event]:
        for route, group, files in self._files:
            # What has changed is noted, whether or not that was the question. Files that could not
            # be read may be readable later without a change: permissions, descriptors.
            news, before = files.changed() or all_of_them, files.refused
            if not news and not before:
                continue
            try:
                files.reload()
            except ConfigurationError as error:
                if news or str(error) != before:
                    yield CertificatesRefused(route=route, group=group, reason=str(error))
            else:
                yield CertificatesReloaded(route=route, group=group)


def make_connector(tls: BrokerTlsSettings, sasl: SaslSettings) -> Connector:
    """Return the way in to brokers that are no route's yet.

    :raises ConfigurationError: a certificate, key or root cannot be used.
    """
    return _connector(TlsFiles(tls) if tls.enabled else None, tls, sasl)


def _connector(tls: TlsFiles | None, settings: BrokerTlsSettings, sasl: SaslSettings) -> Connector:
    credentials = Credentials(sasl) if sasl.mechanism != "none" else None
    return Connector(tls, settings.server_name, credentials)


def make_route(settings: RouteSettings, mode: Mode, config: RouteConfig) -> Route:
    """Return the route of ``settings``, of whose broker nothing is known yet."""
    # TLS that is relayed cannot be read, and its broker cannot be asked without TLS.
    if settings.client_tls.mode == "pass":
        return Route(settings.name, Mode.OFF, replace(config, synthesize=False, relays_tls=True))
    return Route(settings.name, mode, config)
