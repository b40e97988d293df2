"""Everything that an operator can set, and the rules that involve more than one route.

`Settings(...)` takes its values from its arguments alone. `leader_hints.cli.sources` gathers them
from the command line, the environment and the file, so that a refusal can say where a value came
from.
"""

from itertools import combinations
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from leader_hints.address import Address, leads_to, overlap
from leader_hints.settings.clients import ClientSettings, HintUse
from leader_hints.settings.fields import file, refuse_twice, seconds, secret, whole
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.journal import JournalSettings
from leader_hints.settings.limits import LimitSettings
from leader_hints.settings.log import LogSettings
from leader_hints.settings.metrics import MetricsSettings
from leader_hints.settings.racks import Racks, by_node
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.subscription import SubscriptionSettings

HintsMode = Literal["on", "observe", "off"]
ClosestReplica = Literal["off", "observe", "on"]
TopicIds = Literal["broker", "synthesize"]
_MOST_WORKERS: Final = 128
#: The system takes 107, and some have fewer; beside the path is one with a process id at its end.
_MOST_SOCKET_BYTES: Final = 90
#: The system takes 255; beside the file is one with a process id at its end.
_MOST_NAME_BYTES: Final = 240


class Settings(BaseSettings):
    """Everything that an operator can set."""

    # Large because each key at the top level of the file is a field.

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
    closest_replica: ClosestReplica = Field(
        default="off",
        description="on: consumers with a `client.rack` read from an in-sync replica in their rack "
        "(KIP-392), where the brokers have no replica selector. observe: count what would have "
        "been read there and change no byte. It never does more than `hints` allows: with `hints: "
        "off` nothing, with `hints: observe` it observes. It needs `workers: 1`.",
    )
    racks: Racks = Field(
        default=(),
        description="For closest_replica: the rack of each broker by its node id, such as "
        "`[1=eu-1a, 2=eu-1b]`, where the brokers have no `broker.rack`. Where it names none, the "
        "brokers' own racks count. In the environment a comma-separated list.",
    )
    clients: tuple[ClientSettings, ...] = Field(
        default=(),
        description="Clients that use other hints than is built in. Only clients that are known to "
        "use hints are offered newer versions than their broker's. In the environment a JSON list.",
    )
    topic_ids_wait_ms: int = whole(
        2000,
        0,
        600000,
        "With topic_ids synthesize: how long a new process waits at most, until every broker was "
        "asked whether it gives the same ids. It takes no clients until then. Clients that it "
        "accepts because this time is over get no ids until all were asked. Then their connections "
        "end when no request is under way.",
    )
    admin: Address | None = Field(
        default=None,
        description="HOST:PORT of the HTTP server for metrics, health, the status page and the "
        "kill switch; port 0 is a free port, ${NAME} stands for an environment variable. null: "
        "none. Any client that reaches it may read all; changes are for this machine alone, or "
        "need admin_token. Keep it on the loopback address or a private network.",
    )
    admin_token: str = secret(
        "What a request must have that changes something at the admin server, such as the kill "
        "switch: a header Authorization: Bearer TOKEN. Empty: it must come from this machine, from "
        "a loopback address.",
        read="for each change",
    )
    switch_file: str = file(
        "A file in which the kill switch keeps what it has set, so that a restart does not undo "
        "it; empty: a restart restores the settings. The folder must exist and be writable; each "
        "process needs a file of its own."
    )
    connect_timeout_ms: int = whole(
        10000,
        1,
        600000,
        "How long a connection to a route's broker may take before the client's is closed.",
    )
    greeting_timeout_ms: int = whole(
        10000,
        1,
        600000,
        "How long a client may take for its TLS handshake and its PROXY header before its "
        "connection is closed.",
    )
    drain_ms: int = whole(
        15000,
        0,
        3600000,
        "At SIGTERM or SIGINT: how long connections may go on until each has no request under "
        "way. After a third of it no further request is read. 0: they are closed at once. A "
        "second signal closes the rest at once.",
    )
    takeover: Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")] | None = Field(
        default=None,
        description="Path of a Unix socket by which a new process takes over from this one: it "
        "gets the listening sockets, so no connection is refused. The folder must exist. null: "
        "none.",
    )
    workers: Annotated[int, Field(ge=1, le=_MOST_WORKERS, strict=True)] | Literal["auto"] = Field(
        default=1,
        description="How many processes serve connections. 1: one process does all. With more it "
        "decides, and has so many worker processes for the connections. auto: one for each "
        "processor that it may use.",
    )
    stuck_ms: int = whole(
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
        refuse_twice("listening address", [str(listen) for listen in listens if listen.port])
        refuse_twice("route name", [route.name for route in self.routes])
        for one, another in combinations(listens, 2):
            if overlap(one, another):
                raise ValueError(
                    f"the listening addresses {one} and {another} overlap; each needs a port "
                    "or an address of its own"
                )
        for route in self.routes:
            for other in self.routes:
                if route is not other and leads_to(route.upstream, other.listen):
                    raise ValueError(
                        f"upstream {route.upstream} of route {route.name} leads to route "
                        f"{other.name} of this very process, which listens at {other.listen}; "
                        "upstream must be the broker's address"
                    )
            if self.admin is not None and leads_to(route.upstream, self.admin):
                raise ValueError(
                    f"upstream {route.upstream} of route {route.name} leads to this process's "
                    f"admin server at {self.admin}; upstream must be the broker's address"
                )
        return self

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if self.takeover and self.takeover.rstrip("/").rpartition("/")[2] in ("", "."):
            raise ValueError(f"takeover is {self.takeover}, which names no file; it is a socket")
        socket_bytes = _bytes_of(self.takeover or "")
        if socket_bytes > _MOST_SOCKET_BYTES:
            raise ValueError(
                f"takeover has {socket_bytes} bytes; the path of a Unix socket may have "
                f"{_MOST_SOCKET_BYTES}"
            )
        name_bytes = _bytes_of(self.switch_file.rpartition("/")[2])
        if name_bytes > _MOST_NAME_BYTES:
            raise ValueError(
                f"switch_file: the file's name has {name_bytes} bytes; it may have "
                f"{_MOST_NAME_BYTES}"
            )
        return self

    @model_validator(mode="after")
    def _check_workers(self) -> Self:
        if self.closest_replica != "off" and self.workers != 1:
            raise ValueError(
                "closest_replica needs workers: 1, since workers know nothing of replicas; set one "
                "of the two to its default"
            )
        return self

    @model_validator(mode="after")
    def _check_clients(self) -> Self:
        versions = [f"{client.name} since {client.first_version}" for client in self.clients]
        for number, client in enumerate(self.clients):
            if versions[number] in versions[:number]:
                since = f"since {client.since}" if client.since else "without since"
                raise ValueError(
                    f"clients: {client.name} {since} is listed twice; list it once, with "
                    "everything that it uses"
                )
        return self

    @property
    def client_uses(self) -> list[tuple[str, tuple[int, ...], tuple[HintUse, ...]]]:
        """Name, first version and used hints of each of ``clients``."""
        return [(client.name, client.first_version, client.uses) for client in self.clients]

    @property
    def racks_by_node(self) -> dict[int, str]:
        """``racks`` by node id."""
        return by_node(self.racks)

    @property
    def topic_ids_wait(self) -> float:
        """``topic_ids_wait_ms`` in seconds."""
        return seconds(self.topic_ids_wait_ms)

    @property
    def connect_timeout(self) -> float:
        """``connect_timeout_ms`` in seconds."""
        return seconds(self.connect_timeout_ms)

    @property
    def greeting_timeout(self) -> float:
        """``greeting_timeout_ms`` in seconds."""
        return seconds(self.greeting_timeout_ms)

    @property
    def drain(self) -> float:
        """``drain_ms`` in seconds."""
        return seconds(self.drain_ms)

    @property
    def stuck(self) -> float:
        """``stuck_ms`` in seconds."""
        return seconds(self.stuck_ms)


def _bytes_of(path: str) -> int:
    """Return how many bytes the system counts."""
    return len(path.encode("utf-8", "surrogateescape"))
