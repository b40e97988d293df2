"""Credentials: what the proxy's own connections authenticate with, and in which words."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence

import trio
from scramp import ScramClient, ScramException

from leader_hints.errors import BrokerError, ConfigurationError
from leader_hints.net.brokers.kerberos import Kerberos
from leader_hints.net.brokers.secret import read_secret
from leader_hints.net.brokers.token_endpoint import TokenEndpoint
from leader_hints.settings.sasl import SaslSettings

#: Yields what the client says, is sent what the broker answers, and returns when all is said.
Conversation = Generator[bytes, bytes, None]

#: What is kept of a broker's words.
_LONGEST = 300
_HIDDEN = "***"
_THREADS = 4


class Credentials:
    """Of one route. Secrets are read for each conversation: new ones need no restart.

    ``threads``: those in which that is done. Where secrets hang they hang, and no others.
    ``slow``: what has not happened where a step takes too long.
    """

    def __init__(self, settings: SaslSettings) -> None:
        """:raises ConfigurationError: the mechanism needs a library that is not installed."""
        self.mechanism: str = settings.mechanism
        self.slow = "the secret was not read and hashed"
        self.threads = trio.CapacityLimiter(_THREADS)
        self._settings = settings
        self._kerberos: Kerberos | None = None
        if settings.mechanism == "GSSAPI":
            self._kerberos = Kerberos(settings)
            self.slow = "no ticket: a KDC, a name server or a disk does not answer"
        self._endpoint: TokenEndpoint | None = None
        if settings.token_endpoint:
            self._endpoint = TokenEndpoint(settings, lambda: self.threads)
        self._fetched = ""
        talk: dict[str, Callable[[list[str]], Conversation]] = {
            "PLAIN": self._plain,
            "OAUTHBEARER": self._oauthbearer,
        }
        self._talk = talk.get(settings.mechanism, self._scram)

    def renew_threads(self) -> None:
        """Have secrets read in other threads: the present ones may all hang for good."""
        self.threads = trio.CapacityLimiter(_THREADS)
        if self._kerberos is not None:
            self._kerberos.renew()

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything that :meth:`hidden` reads from a disk."""
        return any(self._sources)

    @property
    def _sources(self) -> tuple[str, ...]:
        settings = self._settings
        return settings.password, settings.token, settings.client_secret

    def check(self) -> None:
        """See that what a conversation needs on this machine is there. It may hang with a disk.

        :raises ConfigurationError: it is not; the text says what and where.
        """
        if self._kerberos is not None:
            self._kerberos.check()
        elif self._endpoint is not None:
            self._endpoint.check()
        else:
            # A conversation begins with the secret; nothing is sent.
            next(self.converse([], ""))

    async def prepare(self, used: list[str]) -> None:
        """Do before a conversation what needs the network and no thread: fetch a token.

        :raises LoginError: there is no token; the text says why.
        """
        if self._endpoint is not None:
            self._fetched = await self._endpoint.token(used)

    def converse(self, used: list[str], host: str) -> Conversation:
        """Begin a conversation. It reads the disk and computes, and may ask a KDC: step it in a
        thread.

        Its steps raise ConfigurationError where there is no secret, LoginError where a KDC gives no
        ticket, and BrokerError where the broker breaks the rules of the mechanism or does not know
        the secret itself. ``used``: what it adds the secret to, for :meth:`hidden`. ``host``: of
        the broker, as in its Kerberos principal.
        """
        return self._talk(used) if self._kerberos is None else self._kerberos.converse(host)

    def refused(self, used: Sequence[str]) -> None:
        """Take it that a broker refuses what was ``used``: a fetched token is not used again."""
        if self._endpoint is not None and used:
            self._endpoint.refused(used[-1])

    def refusal(self, words: str, host: str) -> str:
        """Return what an operator should know where a broker refuses, in its ``words``."""
        return words if self._kerberos is None else self._kerberos.refusal(words, host)

    def hidden(self, text: str, used: Iterable[str]) -> str:
        """Return a broker's words, cut, and without any secret that it may have quoted.

        Neither one that was ``used``, which may have been replaced or removed meanwhile, nor the
        present one.
        """
        secrets = [*used]
        for source in self._sources:
            if source:
                with contextlib.suppress(ConfigurationError):
                    secrets.append(read_secret(source))
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text[:_LONGEST]

    def _plain(self, used: list[str]) -> Conversation:
        """RFC 4616."""
        used.append(read_secret(self._settings.password))
        yield f"\0{self._settings.username}\0{used[-1]}".encode()

    def _oauthbearer(self, used: list[str]) -> Conversation:
        """RFC 7628. A broker that refuses says so in a token, and waits for a word on that."""
        used.append(self._fetched or read_secret(self._settings.token))
        refusal = yield f"n,,\1auth=Bearer {used[-1]}\1\1".encode()
        if refusal:
            # The error may come late (connection.failed.authentication.delay.ms), or never.
            self.refused(used)
            yield b"\1"
            raise BrokerError(f"it refuses the token: {refusal.decode(errors='replace')}")

    def _scram(self, used: list[str]) -> Conversation:
        """RFC 5802, in which the broker too proves that it knows the password."""
        used.append(read_secret(self._settings.password))
        try:
            client = ScramClient([self.mechanism], self._settings.username, used[-1])
            first = client.get_client_first()
        except ScramException:
            raise ConfigurationError(
                "the user name or the password has characters that SCRAM does not allow"
            ) from None
        challenge = yield first.encode()
        try:
            client.set_server_first(challenge.decode())
            final = client.get_client_final()
        except (ScramException, ValueError) as error:
            raise BrokerError(f"its answer breaks {self.mechanism}: {error}") from None
        proof = yield final.encode()
        try:
            client.set_server_final(proof.decode())
        except (ScramException, ValueError) as error:
            raise BrokerError(f"it does not prove that it knows the user: {error}") from None
