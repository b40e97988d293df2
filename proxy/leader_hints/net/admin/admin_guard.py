"""Which HTTP requests the admin server refuses, since a web page might have made them, or since
they change something and are from another machine.

Anybody who reaches it may read, and it is mostly at the loopback address of a machine on which
somebody may browse. A page of another site must not reach it: neither as itself, nor by a name of
its own that it has point here (DNS rebinding).

Tested in ``tests/net/admin/test_admin.py``.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from leader_hints.address import Address

#: Those that change nothing.
SAFE_METHODS = frozenset({"GET", "HEAD"})
#: Of Sec-Fetch-Site: the page is our own, or a person typed the address. "same-site" is another
#: port of this machine, where anything may run.
_OURS = frozenset({"same-origin", "none"})
#: What a reverse proxy adds. It may be on this machine, and its clients are not.
_FORWARDED = frozenset({"forwarded", "x-forwarded-for"})
#: What a header's value loses at its ends, and a token from a variable or a file may have there.
_BLANKS = " \t\r\n"


def refusal(method: str, headers: Mapping[str, str], listen: Address) -> str | None:
    """Return why a request is refused, ``None`` where it is not.

    ``headers``: with names in lower case. ``listen``: the address that the operator gave.
    """
    host = headers.get("host")
    # Browsers always say a host; what says none is no browser.
    trusted = host is None or _is_ours(host, listen)
    if not trusted and listen.is_loopback:
        return f"unknown host: ask for {listen}, an IP address or localhost"
    if method in SAFE_METHODS:
        return None
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None and site not in _OURS:
        return "the request comes from another site"
    if origin is not None and _place(origin) != host:
        return "the request comes from another origin"
    if not trusted and (origin is not None or site is not None):
        return "unknown host: browsers may change something only by IP address or localhost"
    return None


def denial(
    method: str, headers: Mapping[str, str], token: str | None, *, is_near: bool
) -> tuple[int, str] | None:
    """Return with which status and why a change is denied, ``None`` where nothing is.

    ``token``: what a change needs, ``None``: none is set. ``is_near``: its connection comes from
    this machine.
    """
    if method in SAFE_METHODS:
        return None
    if token is None:
        if is_near and headers.keys().isdisjoint(_FORWARDED):
            return None
        return 403, "changes are taken from this machine only; set admin_token to allow others"
    scheme, _, given = headers.get("authorization", "").partition(" ")
    wanted = token.strip(_BLANKS).encode()
    # As long for a wrong token as for the right one.
    right = hmac.compare_digest(given.strip(_BLANKS).encode("latin-1", "replace"), wanted)
    if wanted and right and scheme.lower() == "bearer":
        return None
    return 401, "a change needs the header Authorization: Bearer TOKEN, with that of admin_token"


def _place(origin: str) -> str | None:
    """Return the host and port of an origin, ``None`` where it is no URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        # It begins with a bracket that nothing closes, say.
        return None


def _is_ours(host: str, listen: Address) -> bool:
    """Whether no foreign name can be meant: a name in DNS may point anywhere, an address not."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", listen.host):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
