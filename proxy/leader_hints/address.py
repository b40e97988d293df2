"""Addresses: a host and a TCP port, written `HOST:PORT`."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

MAX_PORT: Final = 65535
_HOST_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*\.?", re.ASCII)
_LOOKS_LIKE_IPV4: Final = re.compile(r"[0-9.]+", re.ASCII)
#: By RFC 6761 it is always this machine; a name may end with the root's dot.
_LOCALHOST: Final = ("localhost", "localhost.")
_LOCALHOST_IS: Final = frozenset(map(ipaddress.ip_address, ("127.0.0.1", "::1")))
# As it is written in a file, where an environment variable may be named; parse() sees its value.
_ADDRESS_PATTERN: Final = r"^(\[[^\[\]]+\]|[^\[\]:]+):([0-9]{1,5}|\$\{[A-Za-z_][A-Za-z0-9_]*\})$"
_ADDRESS_FORM: Final = "HOST:PORT, such as 127.0.0.1:9092, broker-1:9092 or [::1]:9092"


_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host and a TCP port, written `HOST:PORT`; an IPv6 host stands in brackets.

    Attributes:
        host: a host name in lower case, or an IP address in its shortest form, without brackets.
        port: 0 to 65535; 0 lets the system choose where that makes sense (listening).
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `HOST:PORT`.

        Raises:
            ValueError: the text is no address; the message says what is wrong and what is allowed.
        """
        if "/" in text:  # brokers write theirs as PLAINTEXT://host:port
            raise ValueError(f"no scheme and no path; allowed: {_ADDRESS_FORM}")
        host, colon, port = text.rpartition(":")
        if not colon:
            raise ValueError(f"no port; allowed: {_ADDRESS_FORM}")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= MAX_PORT):
            raise ValueError(f"the port must be a number from 0 to {MAX_PORT}")
        return cls(parse_host(host), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether the host stands for every address of the machine."""
        return any(ip.is_unspecified for ip in self.ips)

    @property
    def is_loopback(self) -> bool:
        """Whether the host is plainly this machine: `localhost`, 127.0.0.0/8 or ::1."""
        return any(ip.is_loopback for ip in self.ips)

    @property
    def ips(self) -> frozenset[_Ip]:
        """The IP addresses that the host is by its text alone; none of any other name.

        An IPv4 address that is written as an IPv6 one is the former: the system connects to that.
        """
        if self.host in _LOCALHOST:
            return _LOCALHOST_IS
        try:
            ip = ipaddress.ip_address(self.host)
        except ValueError:
            return frozenset()
        mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
        return frozenset({mapped if mapped is not None else ip})

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """As text in files and in the JSON schema, as an `Address` in the program."""
        text = core_schema.str_schema(pattern=_ADDRESS_PATTERN)
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(cls.parse, text),
            python_schema=core_schema.no_info_plain_validator_function(cls._from_value),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def _from_value(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        raise ValueError(f"allowed: {_ADDRESS_FORM}")


def leads_to(upstream: Address, listen: Address) -> bool:
    """Whether a connection to ``upstream`` certainly arrives at ``listen`` on this machine."""
    if upstream.port != listen.port:
        return False
    if listen.is_wildcard:
        # Every address of its own family: an IPv6 listener takes no IPv4 here.
        return any(ip.is_loopback and ip.version in _families(listen) for ip in upstream.ips)
    return _same_host(upstream, listen)


def overlap(one: Address, other: Address) -> bool:
    """Whether two listeners certainly share an address, so that only one of them can be opened."""
    if one.port != other.port or one.port == 0:
        return False
    if one.is_wildcard or other.is_wildcard:
        return bool(_families(one) & _families(other))
    return _same_host(one, other)


def _families(address: Address) -> set[int]:
    return {ip.version for ip in address.ips}


def _same_host(one: Address, other: Address) -> bool:
    if one.ips and other.ips:
        return bool(one.ips & other.ips)
    return one.host.rstrip(".") == other.host.rstrip(".")


def parse_host(text: str) -> str:
    """Read a host as an address has it: an IPv6 address in brackets.

    :raises ValueError: it is neither a host name nor an IP address.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise ValueError("the host in brackets is no IPv6 address") from None
    if ":" in text:
        raise ValueError("an IPv6 address stands in brackets, such as [::1]:9092")
    if _LOOKS_LIKE_IPV4.fullmatch(text):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise ValueError("the host is no IPv4 address") from None
    host = text.lower()
    if len(host) > 253 or not _HOST_NAME.fullmatch(host):
        raise ValueError(f"the host is no host name; allowed: {_ADDRESS_FORM}")
    return host
