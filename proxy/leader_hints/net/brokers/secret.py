"""Secrets: where they are found, and what they are only when somebody needs them.

Tested in ``tests/net/test_hostile_values.py``.
"""

import os
from pathlib import Path
from typing import Final

from leader_hints.errors import ConfigurationError

#: More than any password or token; a file that is larger is another one.
_LARGEST: Final = 65_536
_FILE, _VARIABLE = "file:", "env:"


def file_of(source: str) -> str:
    """Return the path of the file that a secret stands in, "" where it stands in none."""
    return source.removeprefix(_FILE) if source.startswith(_FILE) else ""


def _is_text(secret: str) -> bool:
    """Whether it can be sent: bytes that are not UTF-8 come out of the environment as surrogates
    (PEP 383), which nothing encodes."""
    try:
        secret.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_secret(source: str) -> str:
    """Return the secret at ``source``, which is file:PATH (its first line) or env:NAME.

    It is read for each connection, so that a new secret needs no restart.

    :raises ConfigurationError: there is none; the text says where, and never what was found.
    """
    if source.startswith(_VARIABLE):
        name = source.removeprefix(_VARIABLE)
        secret = os.environ.get(name, "")
        if not secret:
            raise ConfigurationError(f"the environment variable {name} has no secret")
        if not _is_text(secret):
            raise ConfigurationError(f"the secret in environment variable {name} is not UTF-8")
        return secret
    path = Path(source.removeprefix(_FILE))
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read the secret in {path}: {error.strerror}") from None
    if len(raw) > _LARGEST:
        raise ConfigurationError(f"{path} is larger than a secret may be, {_LARGEST} bytes")
    try:
        secret, _, _ = raw.decode().partition("\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"the secret in {path} is not UTF-8") from None
    secret = secret.rstrip("\r")
    if not secret:
        raise ConfigurationError(f"the first line of {path} is empty; the secret must stand there")
    return secret
