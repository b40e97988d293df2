"""Kerberos: conversations by GSSAPI, with a ticket from a keytab or from a ticket cache (RFC 4752).

The library is MIT's, by way of python-gssapi: it gets tickets and renews them. Past half of the
life of a ticket from a keytab it asks for the next one, and goes on with the ticket that it has
while no KDC answers. Its calls wait for KDCs and name servers: make them in a thread.
"""

import itertools
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from leader_hints.errors import BrokerError, ConfigurationError, LoginError
from leader_hints.settings.sasl import SaslSettings

_EXTRA: Final = (
    "mechanism GSSAPI needs the extra kerberos: "
    "pip install 'kafka-leader-hints[kerberos]' installs it"
)
#: Minor codes of MIT Kerberos begin here (krb5_err.et). Most of them are a KDC's (RFC 4120).
_FIRST: Final = 2_529_638_912
#: Those below this are of the protocol: in a broker's answer, reasons why it refuses a ticket.
_PROTOCOL: Final = 128
_EXPIRED: Final = 32
#: The code for a keytab without the principal (gssapi_err_krb5.et).
_NOT_IN_KEYTAB: Final = 39_756_033
#: What an operator does about an error, by its code.
_WORDS: Final[Mapping[int, str]] = {
    6: "the KDC does not know the principal {principal}: create it there, or correct "
    "sasl.principal",
    7: "the KDC does not know the broker's principal {service}: sasl.server_name and "
    "sasl.service_name must be as in the broker's keytab, and [domain_realm] of krb5.conf must "
    "lead to its realm",
    14: "the KDC takes none of the encryption types in {source}: export the keytab again",
    18: "the principal {principal} is locked or has expired at the KDC",
    23: "the key of {principal} has expired at the KDC: renew it, and export the keytab again",
    24: "the key in {source} is not the present one of {principal}: export the keytab again",
    31: "the key in {source} is not the present one of {principal}: export the keytab again",
    32: "the ticket in {source} has expired: renew it, as kinit does",
    37: "the clocks of this machine and the KDC differ by more than Kerberos allows: synchronize "
    "both",
    134: "{principal} is no name of a principal: correct sasl.principal",
    135: "krb5.conf cannot be read",
    136: "krb5.conf is not well formed",
    141: "{source} has no ticket: get one, as kinit does",
    154: "krb5.conf and DNS have no KDC of the realm",
    156: "no KDC answers: see [realms] of krb5.conf, and whether this machine reaches it",
    195: "{source} has no ticket: get one, as kinit does",
    220: "the name of the KDC cannot be resolved: see [realms] of krb5.conf",
}
#: What the library says of an error of which its kind says all, such as a token that is none.
_NOTHING_MORE: Final = "Success"
#: The only security layer that the proxy takes: none (RFC 4752, section 3.3).
_NO_LAYER: Final = 1
_LAYERS_BYTES: Final = 4
_CHOICE: Final = bytes((_NO_LAYER, 0, 0, 0))
#: A cache that is not in a file, such as KCM: or KEYRING:session.
_NOT_A_FILE: Final = re.compile(r"(?!FILE:)[A-Za-z]+:")
_caches = itertools.count(1)


class _Tickets(NamedTuple):
    """Where the library has them. ``lock``: held while they are used. A cache is written again when
    its ticket is renewed: nothing else may read it meanwhile."""

    store: Mapping[str, str]
    lock: threading.Lock


class Kerberos:
    """The tickets of one route's connections, and what is said with them.

    Tickets that come by a keytab stay in the memory of this process.
    """

    def __init__(self, settings: SaslSettings) -> None:
        """:raises ConfigurationError: python-gssapi, or the library below it, is missing."""
        try:
            # Imported here: only who uses Kerberos needs it.
            import gssapi
        except ModuleNotFoundError:
            raise ConfigurationError(_EXTRA) from None
        except (ImportError, OSError) as error:
            reason = f"the Kerberos library cannot be loaded: {error}"
            raise ConfigurationError(f"{reason}; Debian: libgssapi-krb5-2") from None
        self._gssapi: Any = gssapi
        self._service = settings.service_name
        self._principal = settings.principal
        self._keytab = settings.keytab
        self._source = settings.keytab or settings.ticket_cache
        self._tickets = self._new_tickets()

    def renew(self) -> None:
        """Get tickets apart from a conversation that has them now: it may hang for good."""
        if self._tickets.lock.locked():
            self._tickets = self._new_tickets()

    def service(self, host: str) -> str:
        """Return the broker's principal, as an operator knows it."""
        return f"{self._service}/{host}"

    def refusal(self, words: str, host: str) -> str:
        """Return what an operator should know of a broker that refuses a ticket, in its words."""
        return (
            f"the broker refuses the ticket for {self.service(host)}: {words}; its listener must "
            "have the present key of that very principal, and its clock must agree with the KDC's"
        )

    def check(self) -> None:
        """See that the keytab or the cache can be used. It asks no KDC.

        :raises ConfigurationError: it cannot; the text says why.
        """
        path = "" if _NOT_A_FILE.match(self._source) else self._source.removeprefix("FILE:")
        if path:
            try:
                with open(path, "rb") as file:
                    file.read(1)
            except OSError as error:
                what = "keytab" if self._keytab else "ticket cache"
                raise ConfigurationError(
                    f"cannot read the {what} {path}: {error.strerror}"
                ) from None
        try:
            with self._errors(""):
                if self._keytab:
                    self._check_keytab()
                else:
                    # It fails where the ticket has expired.
                    self._credentials(self._tickets.store).inquire()
        except LoginError as error:
            raise ConfigurationError(str(error)) from None

    def converse(self, host: str) -> Generator[bytes, bytes, None]:
        """Have a conversation with the broker whose principal has ``host``.

        Its steps raise LoginError where there is no ticket, and BrokerError where the broker breaks
        the rules.
        """
        tickets = self._tickets
        with self._errors(host), tickets.lock:
            context = self._begin(host, tickets.store)
            token = context.step()
        while not context.complete:
            answer = yield token or b""
            with self._answers(host):
                token = context.step(answer)
        message = yield token or b""
        with self._answers(host):
            layers = context.unwrap(message).message
            if len(layers) != _LAYERS_BYTES or not layers[0] & _NO_LAYER:
                raise BrokerError("it wants a security layer (auth-int, auth-conf); Kafka has none")
            # Without an authorization identity: that is the principal.
            choice = context.wrap(_CHOICE, False).message
        yield choice

    def _new_tickets(self) -> _Tickets:
        store = {"ccache": self._source}
        if self._keytab:
            memory = f"MEMORY:leader-hints-{next(_caches)}"
            store = {"client_keytab": f"FILE:{self._keytab}", "ccache": memory}
        return _Tickets(store, threading.Lock())

    def _begin(self, host: str, store: Mapping[str, str]) -> Any:
        gssapi = self._gssapi
        flags = gssapi.RequirementFlag
        context = gssapi.SecurityContext(
            # The library finds the realm, and may ask DNS for the host's full name (krb5.conf).
            name=gssapi.Name(f"{self._service}@{host}", gssapi.NameType.hostbased_service),
            creds=self._credentials(store),
            flags=[flags.mutual_authentication, flags.integrity],
            mech=gssapi.MechType.kerberos,
            usage="initiate",
        )
        # Errors come where they happen, and not at the next step.
        context.__DEFER_STEP_ERRORS__ = False
        return context

    def _credentials(self, store: Mapping[str, str]) -> Any:
        return self._gssapi.Credentials(
            name=self._name() if self._principal else None,
            usage="initiate",
            mechs=[self._gssapi.MechType.kerberos],
            store=store,
        )

    def _name(self) -> Any:
        return self._gssapi.Name(self._principal, self._gssapi.NameType.kerberos_principal)

    def _check_keytab(self) -> None:
        """See that the principal is in the keytab. Only acceptors may look without asking a KDC."""
        try:
            self._gssapi.Credentials(
                name=self._name(),
                usage="accept",
                mechs=[self._gssapi.MechType.kerberos],
                store={"keytab": f"FILE:{self._keytab}"},
            )
        except self._gssapi.exceptions.GSSError as error:
            if error.min_code == _NOT_IN_KEYTAB:
                listed = f"`klist -k {self._keytab}` lists those that it has"
                raise ConfigurationError(
                    f"the keytab {self._keytab} has no key of {self._principal}: {listed}"
                ) from None
            if isinstance(error, self._gssapi.exceptions.BadNameError):
                raise
            raise ConfigurationError(
                f"the keytab {self._keytab} cannot be used: {_text(error)}"
            ) from None

    @contextmanager
    def _errors(self, host: str) -> Generator[None, None, None]:
        """Say in words what was wrong with getting a ticket."""
        try:
            yield
        except self._gssapi.exceptions.GSSError as error:
            code = error.min_code - _FIRST
            if isinstance(error, self._gssapi.exceptions.ExpiredCredentialsError):
                code = _EXPIRED
            if code in (141, 195) and self._keytab:
                # The library says so whatever is wrong with a keytab.
                self.check()
            known = {
                "principal": self._principal or "of the ticket",
                "service": self.service(host),
                "source": self._source,
            }
            text, words = _text(error), _WORDS.get(code)
            sentence = f"{words.format(**known)} ({text})" if words else f"no ticket: {text}"
            raise LoginError(sentence) from None
        except ValueError:
            # Brokers may advertise what nothing encodes (UnicodeError).
            raise BrokerError("its host cannot be in the name of a principal") from None

    @contextmanager
    def _answers(self, host: str) -> Generator[None, None, None]:
        """Say that a broker's answer is wrong, or a refusal."""
        try:
            yield
        except self._gssapi.exceptions.GSSError as error:
            if 0 <= error.min_code - _FIRST < _PROTOCOL:
                raise BrokerError(self.refusal(_text(error), host)) from None
            raise BrokerError(f"its answer breaks GSSAPI: {_text(error)}") from None


def _text(error: Any) -> str:
    """Return what the library says of it. It is kept for the thread in which it failed."""
    texts = error.get_all_statuses(error.min_code, False) if error.min_code else []
    if not texts or texts == [_NOTHING_MORE]:
        texts = error.get_all_statuses(error.maj_code, True)
    return ", ".join(texts)
