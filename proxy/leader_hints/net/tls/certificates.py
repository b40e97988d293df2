"""TlsFiles: certificates, keys and roots as files, and the TLS context that is made of them.

Tested in ``tests/net/test_hostile_values.py``.
"""

import contextlib
import os
import re
import ssl
from collections.abc import Callable
from typing import Final

from leader_hints.errors import ConfigurationError
from leader_hints.net.brokers.secret import file_of, read_secret
from leader_hints.settings.tls import BrokerTlsSettings, ClientTlsSettings
from leader_hints.wire.errors import WireError
from leader_hints.wire.x509 import not_after

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
#: What OpenSSL says of a file, in an operator's words. By the error's reason; often it has none.
_WORDS: Final = {
    None: "no such PEM in it or in its key file, or the key's password is not the right one",
    "KEY_VALUES_MISMATCH": "the key is not that of the certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "no PEM certificate in it",
    "EE_KEY_TOO_SMALL": "its key is too short",
    "CA_MD_TOO_WEAK": "it is signed with a hash that is too weak",
}

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
#: Bytes; OpenSSL's PEM_BUFSIZE, beyond which Python raises ValueError.
_LONGEST_PASSWORD: Final = 1024

_Settings = ClientTlsSettings | BrokerTlsSettings


class TlsFiles:
    """The TLS context of one side of a route, made again when its files have changed.

    ``context``: the newest that could be made. Links keep the one that they began with.
    ``refused``: why the last attempt to make one failed; "": it did not.
    ``hangs``: nobody knows when an attempt to read them ends.
    ``expires``: when the first of its own certificates does, in seconds since 1970; ``None``: it
    has none, or none that is understood.
    """

    def __init__(self, settings: _Settings) -> None:
        """Make the first context.

        :raises ConfigurationError: it cannot be made; the text says of which file, and why.
        """
        self._settings = settings
        self._stamp = self._look()
        self.refused = ""
        self.hangs = False
        self.context = _context(settings)
        self.expires = _expires(settings.certificate)

    def changed(self) -> bool:
        """Return whether files are others than when this was last asked. It reads the disk."""
        before, self._stamp = self._stamp, self._look()
        return self._stamp != before

    def reload(self) -> None:
        """Make the context again. It reads the disk.

        :raises ConfigurationError: it cannot be made; what was made before stays.
        """
        try:
            self.context = _context(self._settings)
        except ConfigurationError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.expires = _expires(self._settings.certificate)

    def _look(self) -> tuple[tuple[int, int, int] | None, ...]:
        settings = self._settings
        password = file_of(settings.key_password)
        return tuple(map(_stamp, (settings.certificate, settings.key, settings.ca, password)))


def _load_roots(context: ssl.SSLContext) -> None:
    """Load the system's, of which OpenSSL does not say that it could not read them."""
    context.load_default_certs()
    # Those in folders are read when they are needed.
    paths = ssl.get_default_verify_paths()
    folders = os.environ.get(paths.openssl_capath_env, paths.openssl_capath).split(os.pathsep)
    if not context.cert_store_stats()["x509"] and not any(map(_may_have_files, folders)):
        raise ConfigurationError("the system's certificate authorities cannot be read; set ca")


def _may_have_files(folder: str) -> bool:
    try:
        with os.scandir(folder) as files:
            return any(files)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # OpenSSL knows the names of those that it needs.
        return True


def _stamp(path: str) -> tuple[int, int, int] | None:
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_ino, status.st_size
    return None


def _expires(path: str) -> float | None:
    if not path:
        return None
    try:
        with open(path, encoding="latin-1") as file:
            found = _CERTIFICATE.findall(file.read())
        return min(not_after(ssl.PEM_cert_to_DER_cert(pem)) for pem in found)
    except (OSError, ValueError, WireError):
        return None


def _context(settings: _Settings) -> ssl.SSLContext:
    if isinstance(settings, ClientTlsSettings):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if settings.ca:
            context.verify_mode = ssl.CERT_REQUIRED
    else:
        # It looks at the host name, too.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if not settings.ca:
            _load_roots(context)
    context.minimum_version = _VERSIONS[settings.minimum_version]
    # A renegotiation costs the server much and the client little, and TLS 1.3 has none.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if settings.ca:
        _load("ca", settings.ca, lambda: context.load_verify_locations(settings.ca))
    if settings.certificate:
        _load("certificate", settings.certificate, lambda: _load_chain(context, settings))
    return context


def _load_chain(context: ssl.SSLContext, settings: _Settings) -> None:
    # Without a password from here OpenSSL would ask for one on the terminal.
    password = read_secret(settings.key_password) if settings.key_password else ""
    if len(password.encode()) > _LONGEST_PASSWORD:
        raise ConfigurationError(
            f"key_password {settings.key_password} is longer than OpenSSL takes, "
            f"{_LONGEST_PASSWORD} bytes; encrypt the key with a shorter one"
        )
    if settings.key:
        # The loading itself does not report which of two files is missing.
        with open(settings.key, "rb"):
            pass
    context.load_cert_chain(settings.certificate, settings.key or None, password)


def _load(what: str, path: str, load: Callable[[], None]) -> None:
    try:
        load()
    except ssl.SSLError as error:
        reason = _WORDS.get(error.reason, str(error.reason).lower())
        raise ConfigurationError(f"{what} {path}: {reason}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(f"{what} {error.filename or path}: {reason}") from None
    except ValueError as error:
        # What Python refuses before it asks OpenSSL.
        raise ConfigurationError(f"{what} {path}: {error}") from None
