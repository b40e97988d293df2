"""Settings: everything that an operator can set, with its default, its bounds and its meaning.

The descriptions below are the reference: `leader-hints config schema` prints them. Units are in the
names: `_ms` are milliseconds, `_bytes` are bytes. The models are frozen and refuse unknown keys.

`Settings(...)` takes its values from its arguments alone. `leader_hints.cli.sources` gathers them
from the command line, the environment and the file, so that a refusal can say where a value came
from.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

HintsMode = Literal["on", "observe", "off"]
TopicIds = Literal["broker", "synthesize"]
LogLevel = Literal["debug", "info", "warning", "error"]  # lowest first
SubsystemLevel = Literal["inherit", "debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]
JournalKind = Literal["off", "files", "topic"]
ClientTlsMode = Literal["refuse", "pass", "terminate"]
TlsVersion = Literal["1.2", "1.3"]
SaslMechanism = Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_MAX_PORT: Final = 65535
_MAX_FRAME_BYTES: Final = 2**31 - 1  # a frame's size is a signed 32-bit number
_DEFAULT_BROKER_REQUEST_BYTES: Final = 104857600  # a broker's default socket.request.max.bytes
_HOST_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*\.?", re.ASCII)
_LOOKS_LIKE_IPV4: Final = re.compile(r"[0-9.]+", re.ASCII)
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)  # Kafka takes no others
#: By RFC 6761 it is always this machine; a name may end with the root's dot.
_LOCALHOST: Final = ("localhost", "localhost.")
_LOCALHOST_IS: Final = frozenset(map(ipaddress.ip_address, ("127.0.0.1", "::1")))
# As it stands in a file, where an environment variable may be named; parse() sees its value.
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
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= _MAX_PORT):
            raise ValueError(f"the port must be a number from 0 to {_MAX_PORT}")
        return cls(_parse_host(host), int(port))

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


def _parse_host(text: str) -> str:
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


def _whole(default: int, low: int, high: int, description: str) -> Any:
    """A whole number from low to high. Strict, so that `true` or `"5"` in a file is refused."""
    return Field(default=default, ge=low, le=high, strict=True, description=description)


class _Group(BaseModel):
    """What all groups of settings share."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _secret(description: str) -> Any:
    """Where a secret is found. A secret itself is refused, and never shown."""
    return Field(
        default="",
        pattern=r"^(|file:[^\x00]+|env:[A-Za-z_][A-Za-z0-9_]*)$",
        description=f"{description} file:PATH is the first line of a file, env:NAME an environment "
        "variable. It is read again for each connection.",
        json_schema_extra={"writeOnly": True},
    )


def _file(description: str) -> Any:
    return Field(default="", pattern=r"^[^\x00]*$", description=description)


class _TlsSettings(_Group):
    """What both sides of TLS share: a certificate of the proxy's own."""

    certificate: str = _file(
        "A PEM file with the proxy's certificate, followed by the intermediate certificates."
    )
    key: str = _file("A PEM file with the certificate's private key; empty: it is in certificate.")
    key_password: str = _secret("The password of the key; empty: it has none.")
    minimum_version: TlsVersion = Field(
        default="1.2", description="The oldest version of TLS that is accepted: 1.2 or 1.3."
    )


class ClientTlsSettings(_TlsSettings):
    """TLS towards clients. Files are read again when they change, and on SIGHUP."""

    mode: ClientTlsMode = Field(
        default="refuse",
        description="refuse: clients speak no TLS; those that do are refused. terminate: clients "
        "speak TLS with the proxy, and are given its certificate. pass: TLS links go through "
        "unread to a listener that speaks TLS itself, and get no hints.",
    )
    ca: str = _file(
        "A PEM file with the roots of clients' certificates. Empty: clients are not asked for one. "
        "Otherwise clients without a certificate from these roots are refused."
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if self.mode == "terminate" and not self.certificate:
            raise ValueError("mode terminate needs certificate, which clients are given")
        return self


class BrokerTlsSettings(_TlsSettings):
    """TLS towards brokers. Files are read again when they change, and on SIGHUP."""

    enabled: bool = Field(default=False, strict=True, description="Whether to use TLS.")
    ca: str = _file(
        "A PEM file with the roots of the certificates that are trusted. Empty: the system's."
    )
    server_name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:-]{0,253}$",
        description="The host name or IP address that must be in the certificate. Empty: the host "
        "of the connection.",
    )

    @field_validator("server_name")
    @classmethod
    def _check_server_name(cls, name: str) -> str:
        """What is neither would be refused by Python's TLS only at the first connection."""
        try:
            if name:
                _parse_host(f"[{name}]" if ":" in name else name)
        except ValueError:
            raise ValueError(
                "that is neither a host name nor an IP address; allowed: such as "
                "broker-1.example.com, 192.0.2.1 or 2001:db8::1"
            ) from None
        return name


class SaslSettings(_Group):
    """How the proxy's own connections authenticate. Clients authenticate themselves, through it."""

    mechanism: SaslMechanism = Field(
        default="none",
        description="none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    )
    username: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The user's name, for PLAIN and SCRAM.",
    )
    password: str = _secret("The user's password, for PLAIN and SCRAM.")
    token: str = _secret("The token (a JWS), for OAUTHBEARER.")

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if self.mechanism == "OAUTHBEARER":
            if not self.token:
                raise ValueError("mechanism OAUTHBEARER needs token")
        elif self.mechanism != "none" and not (self.username and self.password):
            raise ValueError(f"mechanism {self.mechanism} needs username and password")
        return self


class RouteSettings(_Group):
    """A listening address and the one broker behind it."""

    listen: Address = Field(
        description="HOST:PORT that clients connect to and that the broker advertises. 0.0.0.0 or "
        "[::] listens on every address, port 0 on a free port. ${NAME} stands for an environment "
        "variable."
    )
    upstream: Address = Field(
        description="HOST:PORT of the broker's listener whose advertised address is this route's. "
        "${NAME} stands for an environment variable."
    )

    name: str = Field(
        default_factory=lambda route: str(route.get("listen", "")),
        pattern=r"^[A-Za-z0-9._:\[\]%-]{1,100}$",
        json_schema_extra={"pattern": r"^[A-Za-z0-9._:\[\]%${}-]{1,100}$"},
        description="Names the route in logs and metrics; ${NAME} stands for an environment "
        "variable. Default: the text of `listen`.",
    )
    client_tls: ClientTlsSettings = ClientTlsSettings()
    upstream_tls: BrokerTlsSettings = BrokerTlsSettings()
    peer_tls: BrokerTlsSettings = BrokerTlsSettings()
    sasl: SaslSettings = SaslSettings()
    proxy_protocol: bool = Field(
        default=False,
        strict=True,
        description="Whether each connection begins with a header of the PROXY protocol, version 1 "
        "or 2, as a load balancer sends it; then a connection without it is refused. The client's "
        "address in logs and journal is taken from it, so only the load balancer may reach the "
        "listener.",
    )

    @model_validator(mode="after")
    def _check_upstream(self) -> Self:
        if self.upstream.port == 0 or self.upstream.is_wildcard:
            raise ValueError(f"upstream {self.upstream} is no address that can be connected to")
        if _leads_to(self.upstream, self.listen):
            raise ValueError(
                f"upstream {self.upstream} leads to the route's own listen {self.listen}; "
                "upstream must be the broker's address"
            )
        return self


def _leads_to(upstream: Address, listen: Address) -> bool:
    """Whether a connection to `upstream` would plainly come out at `listen` on this machine."""
    if upstream.port != listen.port:
        return False
    if listen.is_wildcard:
        # Every address of its own family: an IPv6 listener takes no IPv4 here.
        families = {ip.version for ip in listen.ips}
        return any(ip.is_loopback and ip.version in families for ip in upstream.ips)
    if upstream.ips and listen.ips:
        return bool(upstream.ips & listen.ips)
    return upstream.host.rstrip(".") == listen.host.rstrip(".")


class LocalSettings(_Group):
    """The virtual cluster of `leader-hints local`: a listener for bootstrap, one for each broker.

    Its values are flags of that command alone.
    """

    bootstrap: Annotated[tuple[Address, ...], Field(min_length=1)] = Field(
        description="HOST:PORT of one or more brokers of the cluster, as clients would have it."
    )
    listen: Address = Field(
        default=Address("127.0.0.1", 19092),
        description="HOST:PORT of the bootstrap listener. The broker with node id N gets the port "
        "above it by 1 + N.",
    )
    advertise: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:-]*$",
        description="The host that clients are told, without a port. Default: that of `listen`.",
    )
    ports: dict[int, Annotated[int, Field(ge=1, le=_MAX_PORT)]] = Field(
        default={}, description="Ports of nodes that shall not follow from the listener's."
    )
    upstream_tls: BrokerTlsSettings = BrokerTlsSettings()
    sasl: SaslSettings = SaslSettings()

    @model_validator(mode="after")
    def _check_listen(self) -> Self:
        if self.listen.port == 0:
            raise ValueError("listen: the port cannot be 0: those of the brokers follow from it")
        if self.listen.is_wildcard and not self.advertise:
            raise ValueError(
                f"listen {self.listen} is every address of the machine; "
                "give --advertise HOST, by which clients find it"
            )
        given = [*self.ports.values(), self.listen.port]
        _refuse_twice("port", [str(port) for port in given])
        return self

    @property
    def host(self) -> str:
        """The host that clients are told."""
        return self.advertise or self.listen.host


class LimitSettings(_Group):
    """What one client, one link or the process may take up."""

    request_bytes: int = _whole(
        1073741824,
        _DEFAULT_BROKER_REQUEST_BYTES,
        _MAX_FRAME_BYTES,
        "Largest request that is relayed. Requests are streamed, so this costs no memory: it is a "
        "guard against garbage, such as the text of an HTTP request read as a size. Never set it "
        "below the brokers' socket.request.max.bytes.",
    )
    link_buffer_bytes: int = _whole(
        4194304,
        65536,
        1073741824,
        "Most of one Fetch response that a link keeps while it looks for errors. A larger response "
        "is forwarded without a hint, and counted.",
    )
    process_buffer_bytes: int = _whole(
        67108864,
        65536,
        68719476736,
        "Most that all links together keep. At least link_buffer_bytes.",
    )
    requests_in_flight: int = _whole(
        10000,
        1,
        1000000,
        "Requests on one link that await their response. At the limit the link reads no further "
        "request until a response arrives.",
    )

    connections: int = _whole(
        30000,
        1,
        1000000,
        "Client connections at once, of all routes. Each takes two file descriptors; where the "
        "system allows fewer, as many as it allows.",
    )
    connections_per_route: int = _whole(
        15000,
        1,
        1000000,
        "Client connections at once of one route. A client often has two or three to a broker.",
    )
    first_bytes_ms: int = _whole(
        30000,
        0,
        3600000,
        "How long a new connection may send nothing before it is closed. 0: for ever.",
    )
    idle_ms: int = _whole(
        0,
        0,
        86400000,
        "How long a connection may have no byte in either direction before it is closed. 0: for "
        "ever; brokers close idle connections themselves (connections.max.idle.ms).",
    )
    linger_ms: int = _whole(
        30000,
        1000,
        3600000,
        "Once the client or the broker has closed: how long no byte may move before the other "
        "side is closed too, such as a client that does not read its last answers.",
    )
    held_responses: int = _whole(
        10000,
        1,
        1000000,
        "Error responses held at once, of all links. Further ones are forwarded without a hint.",
    )
    queued_bytes: int = _whole(
        268435456,
        1048576,
        68719476736,
        "What may wait in memory for clients and brokers that read slowly, of all links, before "
        "links receive only 4 KiB at a time. Until then each receives up to 256 KiB.",
    )

    @model_validator(mode="after")
    def _check_buffers(self) -> Self:
        if self.process_buffer_bytes < self.link_buffer_bytes:
            raise ValueError(
                f"process_buffer_bytes {self.process_buffer_bytes} must be at least "
                f"link_buffer_bytes {self.link_buffer_bytes}"
            )
        return self


class HoldSettings(_Group):
    """How long an error response waits for a hint. Responses queued behind it wait too."""

    deadline_ms: int = _whole(
        100,
        0,
        10000,
        "Longest hold, from the first error of a partition on a broker under one epoch. 0: hold "
        "nothing, and give only the hints that are known already. A busy proxy ends holds up to a "
        "quarter earlier, so as not to be late. A KRaft broker may learn half a second late that "
        "it leads: 500 here and for link_ms_per_second waits for that too.",
    )
    shared_response_ms: int = _whole(
        20,
        0,
        10000,
        "Longest hold where other partitions in the response carry records or acknowledgements.",
    )
    grace_ms: int = _whole(
        20,
        0,
        10000,
        "Longest wait for the response's remaining failed partitions after the first has its hint.",
    )
    link_ms_per_second: int = _whole(
        100, 0, 1000, "Longest that one link is held in each second, all its responses together."
    )
    confirm_ms: int = _whole(
        25,
        0,
        1000,
        "How long a hint waits until the hinted leader confirms that it leads, if it does not "
        "answer; more than refresh_interval_ms, or it is not asked twice. A client that arrives "
        "before the leader knows of its leadership pays a back-off.",
    )


class SubscriptionSettings(_Group):
    """How the view of leaders and epochs is kept fresh, on connections of the proxy's own."""

    poll_interval_ms: int = _whole(
        60000, 100, 3600000, "Time between two polls of everything that is known."
    )
    slice_partitions: int = _whole(
        2000, 1, 100000, "Most partitions that one Metadata request of a poll asks for."
    )
    refresh_interval_ms: int = _whole(
        10, 1, 10000, "Time between two refreshes of the same partitions while a response is held."
    )
    refreshes_per_second: int = _whole(
        20, 1, 1000, "Refreshes on demand that the process starts in a second, in the long run."
    )
    refresh_burst: int = _whole(
        20, 1, 1000, "Refreshes on demand that may start at once after a quiet time."
    )
    answer_timeout_ms: int = _whole(
        2000, 10, 60000, "How long to wait for a broker's answer before reconnecting to it."
    )
    reconnect_min_ms: int = _whole(
        100, 10, 60000, "First pause before a broker is tried again; it doubles at each failure."
    )
    reconnect_max_ms: int = _whole(
        5000, 10, 600000, "Longest pause before a broker is tried again. At least reconnect_min_ms."
    )

    @model_validator(mode="after")
    def _check_pauses(self) -> Self:
        if self.reconnect_max_ms < self.reconnect_min_ms:
            raise ValueError(
                f"reconnect_max_ms {self.reconnect_max_ms} must be at least "
                f"reconnect_min_ms {self.reconnect_min_ms}"
            )
        return self


def _level(description: str) -> Any:
    return Field(default="inherit", description=f"{description} inherit: as log.level.")


class LogLevels(_Group):
    """The lowest level of each subsystem's lines, if it differs from log.level."""

    routes: SubsystemLevel = _level("Routes, their brokers' versions, and what went wrong there.")
    clients: SubsystemLevel = _level("The software of clients, and bytes that are not Kafka.")
    hints: SubsystemLevel = _level("Each hint given, missed, and each recovery; all at debug.")
    leaders: SubsystemLevel = _level("Leader moves.")
    subscription: SubsystemLevel = _level("The proxy's own connections to brokers.")
    journal: SubsystemLevel = _level("The journal, if it cannot be written.")
    admin: SubsystemLevel = _level("The HTTP server.")
    summary: SubsystemLevel = _level("A line for each minute in which something happened.")


class LogSettings(_Group):
    """What is logged, to standard error."""

    level: LogLevel = Field(default="info", description="The lowest level that is logged.")
    format: LogFormat = Field(
        default="auto",
        description="json writes one JSON object on each line, console is for people to read; auto "
        "is console on a terminal and json elsewhere.",
    )
    moves_per_second: int = _whole(
        20,
        0,
        10000,
        "Leader moves in a second that get a line of their own; the others are summed up in one.",
    )
    levels: LogLevels = LogLevels()

    @property
    def by_subsystem(self) -> dict[str, LogLevel]:
        """The least level of each subsystem."""
        own: dict[str, Any] = self.levels.model_dump()
        return {name: self.level if of == "inherit" else of for name, of in own.items()}

    @property
    def least(self) -> LogLevel:
        """The least level that any subsystem writes."""
        return min(self.by_subsystem.values(), key=get_args(LogLevel).index)


def _read_topics(value: Any) -> bool | tuple[str, ...]:
    """Read true, false or a list of names; in one text they are separated by commas."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    if not isinstance(value, list | tuple) or not all(
        isinstance(name, str) and _TOPIC_NAME.fullmatch(name) for name in value
    ):
        raise ValueError("allowed: true, false, or a list of topic names")
    return tuple(value)


_TOPICS_SCHEMA: Final = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string", "pattern": f"^{_TOPIC_NAME.pattern}$"}},
    ]
}


class MetricsSettings(_Group):
    """Additional metrics."""

    topics: Annotated[
        bool | tuple[str, ...],
        PlainValidator(_read_topics),
        PlainSerializer(lambda topics: topics if isinstance(topics, bool) else [*topics]),
        WithJsonSchema(_TOPICS_SCHEMA),
    ] = Field(
        default=False,
        description="Topics whose hints and leader moves are counted by topic: true for all, at "
        "most 1000 of them, or a list of names. Each topic adds some ten time series.",
    )


class JournalSettings(_Group):
    """Which events are recorded for later analysis, and where."""

    kind: JournalKind = Field(
        default="off",
        description="off: no journal. files: JSON lines in a directory. topic: records in Kafka. "
        "`leader-hints journal schema` prints the lines' schema.",
    )
    sidecar: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9.-]{0,250}$",
        description="Names this process in the journal; each needs a name of its own. Empty: the "
        "host's name.",
    )
    path: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The directory for kind files. It must exist; several sidecars may share it.",
    )
    file_bytes: int = _whole(
        67108864, 1024, 1099511627776, "Size at which a file is finished, and another begun."
    )
    file_age_ms: int = _whole(
        300000, 1000, 86400000, "Age at which a file is finished: readers take finished files only."
    )
    kept_bytes: int = _whole(
        1073741824,
        1024,
        1099511627776,
        "Most that this sidecar's finished files take up; the oldest are removed beyond it.",
    )
    bootstrap: str = Field(
        default="",
        pattern=r"^[^\s,]*(,[^\s,]+)*$",
        description="HOST:PORT of one or more brokers, with commas between, for kind topic. It may "
        "lead through the proxy's own routes: the journal's own traffic is not journalled.",
    )
    topic: str = Field(
        default="leader-hints-journal",
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="The topic for kind topic. Create it first, with any number of partitions: "
        "records are keyed by sidecar.",
    )
    properties_file: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="A file of librdkafka properties for kind topic, a line NAME=VALUE for each, "
        "such as security.protocol and sasl.password; empty: none. Protect it from other users.",
    )
    buffer_bytes: int = _whole(
        8388608,
        65536,
        1073741824,
        "Most that waits in memory to be written. Beyond it events are dropped, and counted.",
    )
    flush_ms: int = _whole(
        5000,
        0,
        3600000,
        "How long the end of the process may wait for what is in memory to be written, once the "
        "connections are done (drain_ms). The rest is lost.",
    )
    sample_latencies: int = _whole(
        0,
        0,
        1000000000,
        "One in so many ordinary exchanges of Produce and Fetch has its latency journalled. 0: "
        "none.",
    )

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if self.kind == "files" and not self.path:
            raise ValueError("kind files needs path, the folder that the files are written to")
        if self.kind == "topic" and not self.bootstrap:
            raise ValueError("kind topic needs bootstrap, the brokers that take the records")
        for address in filter(None, self.bootstrap.split(",")):
            try:
                Address.parse(address)
            except ValueError as error:
                raise ValueError(f"bootstrap: {address}: {error}") from None
        return self


class Settings(BaseSettings):
    """Everything that an operator can set."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="LEADER_HINTS_",
        env_nested_delimiter="__",
        title="leader-hints settings",
    )

    routes: Annotated[tuple[RouteSettings, ...], Field(min_length=1)] = Field(
        description="One route for each broker that this process serves. LISTEN=UPSTREAM on the "
        "command line; in the environment a comma-separated list of those, or a JSON list."
    )
    hints: HintsMode = Field(
        default="on",
        description="on: raise versions and give hints. observe: count what would have been hinted "
        "and change no byte. off: relay only.",
    )
    topic_ids: TopicIds = Field(
        default="broker",
        description="broker: clients get the brokers' topic ids, if they have any. synthesize: ids "
        "are derived from cluster id and topic name, so that librdkafka and franz-go use Fetch "
        "hints with brokers of 2.4 to 2.7 too. Every broker of the cluster must be behind a "
        "proxy with this setting. Counts only with hints on.",
    )
    topic_ids_wait_ms: int = _whole(
        2000,
        0,
        600000,
        "With topic_ids synthesize: how long a new process waits at most, until every broker was "
        "asked whether it gives the same ids. It takes no clients until then. Clients that it "
        "accepts because this time is over get no ids on their connections.",
    )
    admin: Address | None = Field(
        default=None,
        description="HOST:PORT of the HTTP server for metrics, health, the status page and the "
        "kill switch; port 0 is a free port, ${NAME} stands for an environment variable. null: "
        "none. It has no access control: keep it on the loopback address or a private network.",
    )
    connect_timeout_ms: int = _whole(
        10000,
        1,
        600000,
        "How long a connection to a route's broker may take before the client's is closed.",
    )
    greeting_timeout_ms: int = _whole(
        10000,
        1,
        600000,
        "How long a client may take for its TLS handshake and its PROXY header before its "
        "connection is closed.",
    )
    drain_ms: int = _whole(
        15000,
        0,
        3600000,
        "At SIGTERM or SIGINT: how long connections may go on until each has no request under "
        "way. 0: they are closed at once. A second signal closes the rest at once.",
    )
    stuck_ms: int = _whole(
        10000,
        0,
        3600000,
        "How long the event loop may stall before a thread logs its stack. 0: no check.",
    )
    limits: LimitSettings = LimitSettings()
    hold: HoldSettings = HoldSettings()
    subscription: SubscriptionSettings = SubscriptionSettings()
    log: LogSettings = LogSettings()
    journal: JournalSettings = JournalSettings()
    metrics: MetricsSettings = MetricsSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the arguments: the library's environment source drops unknown variables silently."""
        return (init_settings,)

    @model_validator(mode="after")
    def _check_routes(self) -> Self:
        listens = [route.listen for route in self.routes]
        if self.admin is not None:
            listens.append(self.admin)
        _refuse_twice("listening address", [str(listen) for listen in listens if listen.port])
        _refuse_twice("route name", [route.name for route in self.routes])
        for route in self.routes:
            for other in self.routes:
                if route is not other and _leads_to(route.upstream, other.listen):
                    raise ValueError(
                        f"upstream {route.upstream} of route {route.name} leads to route "
                        f"{other.name} of this very process, which listens at {other.listen}; "
                        "upstream must be the broker's address"
                    )
        return self


def _refuse_twice(what: str, texts: list[str]) -> None:
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise ValueError(f"the {what} {', '.join(twice)} is used twice; each must be used once")
