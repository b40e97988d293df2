"""Kafka clusters of real broker processes on this machine, one folder of data for each."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kio.schema.metadata.v9.request import MetadataRequest
from kio.schema.metadata.v9.response import MetadataResponse

from tests.harness import class_archives, processes
from tests.harness.connection import Address, BrokerConnection, joined
from tests.harness.maven import Library, broker_library
from tests.harness.ports import free_ports
from tests.harness.waiting import TimedOutError, patience, until

Mode = Literal["zk", "kraft"]
Listeners = Literal["two", "single"]

HOST = "127.0.0.1"
SASL_USER = "alice"
SASL_PASSWORD = "secret"

#: After so long a silence a broker is taken for dead, and its leaders move for good. A busy machine
#: must not do that. ZooKeeper allows no more than 20 of its ticks.
SESSION_MS = "18000"

#: How long all brokers may take to start, three JVMs and more beside those of other tests.
_START_S = 180.0

# Any fixed one that does not begin with a dash, which StorageTool would read as an option.
_KRAFT_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_MEMORY_FILE_SYSTEM = Path("/dev/shm")
# Start-up and steadiness count here, not peak throughput: the first compiler tier is enough.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOGGING = {
    "defaultLogLevel": "warn",
    "showDateTime": "true",
    "dateTimeFormat": "HH:mm:ss.SSS",
    "showShortLogName": "true",
    # Each broker says here when it starts to lead a partition, and under which epoch.
    "log.state.change.logger": "info",
    # A KRaft broker, that it has caught up and is about to be unfenced.
    "log.kafka.server.BrokerLifecycleManager": "info",
    # And here that a replica fell out of sync.
    "log.kafka.cluster.Partition": "info",
}


class BrokerDiedError(AssertionError):
    """A broker or ZooKeeper ended by itself; the end of its log is in the message."""


class ServerProcess:
    """One JVM of the cluster, which can be started again."""

    def __init__(self, name: str, argv: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._argv = argv
        self._process: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id while it runs."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    def start(self, argv: Sequence[str] | None = None) -> None:
        """Start it, as ``argv`` from now on where given; its log goes on in the same file."""
        self._argv = argv or self._argv
        assert not self.running, f"{self.name} runs already"
        self._process = processes.start(self._argv, output=self.log)

    def stop(self) -> None:
        """End it as an operator does (a broker hands its leaderships over first)."""
        self._end(grace_s=30.0)

    def kill(self) -> None:
        """End it at once, without a word to anybody."""
        self._end(grace_s=0.0)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it stand still meanwhile: it runs on afterwards as if nothing had been."""
        assert self._process is not None
        with processes.frozen(self._process):
            yield

    def check(self) -> None:
        """Raise BrokerDiedError if it ended by itself."""
        if self._process is not None and not self.running:
            raise BrokerDiedError(f"{self.name} ended by itself:\n{self.log_tail()}")

    def log_tail(self, lines: int = 60) -> str:
        """The last lines of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, grace_s: float) -> None:
        if self._process is not None:
            processes.end(self._process, grace_s)
            self._process = None


@dataclass(frozen=True)
class Place:
    """Where a broker runs, if not on this machine's loopback address.

    ``port`` is its clients' listener's, ``advertised`` the one that this tells clients, both at
    ``host``. ``inside`` begins the command that runs it, such as ``ip netns exec``. The listener
    is bound to ``bind``.
    """

    host: str
    port: int
    advertised: int
    inside: Sequence[str]
    bind: str


class Broker(ServerProcess):
    """A broker and its addresses.

    ``upstream`` is where its clients' listener really is, ``advertised`` what that listener
    tells clients, ``direct`` an address past every proxy, for the tests' own questions, and
    ``sasl`` a listener that asks for SASL PLAIN, where the cluster has one.
    """

    def __init__(
        self,
        node_id: int,
        argv: Sequence[str],
        log: Path,
        *,
        upstream: Address,
        advertised: Address,
        direct: Address,
        sasl: Address | None,
    ) -> None:
        super().__init__(f"broker {node_id}", argv, log)
        self.node_id = node_id
        self.upstream = upstream
        self.advertised = advertised
        self.direct = direct
        self.sasl = sasl


class RealCluster:
    """A cluster in the sidecar topology, as a context manager.

    With two listeners the brokers talk to each other on INTERNAL, and CLIENTS advertises
    addresses on which a proxy (or a relay) is meant to listen. With a single listener the
    brokers' own traffic goes through those addresses too: start the proxy first.
    The clients' addresses are known before the cluster is entered.
    """

    def __init__(
        self,
        version: str,
        mode: Mode = "zk",
        *,
        folder: Path,
        brokers: int = 3,
        listeners: Listeners = "two",
        sasl: bool = False,
        racks: bool = True,
        apart: bool = False,
        overrides: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        places: Mapping[int, Place] | None = None,
        quorum_host: str = HOST,
    ) -> None:
        """``folder`` takes settings and logs; data goes to a memory file system where one is.

        ``jvm_options``: without those that have brokers start quickly they are as operators run
        them, for what measures them.
        ``apart``: clients get the brokers' own addresses, from 127.0.0.2 on, as where no proxy
        is advertised.
        ``places`` are the brokers' by their ids; ``quorum_host`` is where they find ZooKeeper.
        """
        self.version = version
        self.mode = mode
        self.name = f"{version}-{mode}" + ("-single" if listeners == "single" else "")
        self._folder = folder
        self._data = Path(
            tempfile.mkdtemp(
                prefix="leader-hints-",
                dir=_MEMORY_FILE_SYSTEM if _MEMORY_FILE_SYSTEM.is_dir() else None,
            )
        )
        self._library = broker_library(version)
        self._listeners = listeners
        self._with_sasl = sasl
        self._with_racks = racks
        self._apart = apart
        self._overrides = dict(overrides or {})
        self._jvm_options = tuple(jvm_options)
        self._quick_to_start = set(JVM_OPTIONS) <= set(jvm_options)
        self._upgraded: set[int] = set()
        self._places = dict(places or {})
        self._quorum_host = quorum_host
        self._quorum_ports = free_ports(1 if mode == "zk" else brokers)
        self._size = brokers
        self._zookeeper = self._make_zookeeper() if mode == "zk" else None
        self.brokers = {node: self._make_broker(node) for node in range(1, brokers + 1)}

    @property
    def folder(self) -> Path:
        """Where its settings and logs are."""
        return self._folder

    @property
    def servers(self) -> list[ServerProcess]:
        """All processes of the cluster."""
        first: list[ServerProcess] = [self._zookeeper] if self._zookeeper else []
        return first + list(self.brokers.values())

    @property
    def bootstrap(self) -> str:
        """What clients are given: the advertised addresses."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses("advertised"))

    @property
    def direct_bootstrap(self) -> str:
        """What clients that bypass every proxy are given (with two listeners only)."""
        assert self._listeners == "two", "a single listener advertises the proxies' addresses"
        return ",".join(f"{host}:{port}" for host, port in self._addresses("direct"))

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill every process and remove the data; the logs stay."""
        if self._quick_to_start:
            self._write_class_archive()
        for server in self.servers:
            server.kill()
        shutil.rmtree(self._data, ignore_errors=True)

    def check(self) -> None:
        """Raise BrokerDiedError if any process ended by itself."""
        for server in self.servers:
            server.check()

    def holds(self, node_id: int, topic: str, partition: int) -> bool:
        """Whether a broker has a replica; a folder that is to be deleted has another name."""
        return (self._data / f"broker-{node_id}" / f"{topic}-{partition}").exists()

    def connect(self, node_id: int) -> BrokerConnection:
        """A connection to a broker, past every proxy."""
        return BrokerConnection(self.brokers[node_id].direct)

    def wait_until_ready(self) -> None:
        """Wait until every running broker knows every running broker, and a controller."""
        for broker in self.brokers.values():
            if broker.running:
                until(partial(self._sees_all, broker), f"{self.name} {broker.name} is ready")

    def restart(self, node_id: int) -> None:
        """Start a broker that was stopped or killed, and wait until the cluster has it back."""
        # The cluster forgets a killed broker only when its session ends; ZooKeeper does not let
        # it register before.
        self._wait_until_forgotten(node_id)
        self.brokers[node_id].start()
        self.wait_until_ready()

    @contextlib.contextmanager
    def without(self, node_id: int) -> Iterator[None]:
        """Have a broker stopped meanwhile; it comes back whatever happens, for others."""
        self.brokers[node_id].stop()
        try:
            yield
        finally:
            self.restart(node_id)

    def upgrade(
        self, node_id: int, version: str, overrides: Mapping[str, str] | None = None
    ) -> None:
        """Stop a broker and start it on its data as one of another version.

        What the brokers say to each other stays as the cluster's first version had it
        (inter.broker.protocol.version), as in the first round of a rolling upgrade, unless
        ``overrides`` says otherwise, as in the second.
        """
        broker = self.brokers[node_id]
        broker.stop()
        self._upgraded.add(node_id)
        self._set(node_id, overrides or {})
        self._wait_until_forgotten(node_id)
        broker.start(self._broker_argv(node_id, broker_library(version)))
        self.wait_until_ready()

    def advertise(self, node_id: int, address: Address) -> None:
        """Have a broker's listener for clients advertise an address, from its next start on."""
        told = {"CLIENTS": address, "INTERNAL": self.brokers[node_id].direct}
        self._set(node_id, {"advertised.listeners": listener_list(told)})

    def _set(self, node_id: int, settings: Mapping[str, str]) -> None:
        # Of a setting that stands twice the last one counts.
        with (self._folder / f"broker-{node_id}.properties").open("a") as file:
            file.writelines(f"{key}={value}\n" for key, value in settings.items())

    def add_scram_users(self, passwords: Mapping[str, str]) -> None:
        """Let users authenticate by SCRAM, with either hash."""
        # Brokers that keep them in ZooKeeper can be asked from 2.7 on (KIP-554).
        where = ("--zookeeper", f"{HOST}:{self._quorum_ports[0]}")
        if self.mode == "kraft":
            where = ("--bootstrap-server", self.direct_bootstrap)
        # One after the other: KRaft takes no two credentials of a user in one request.
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            commands = [
                processes.start(
                    self._java(
                        "kafka.admin.ConfigCommand",
                        *(*where, "--alter"),
                        *("--entity-type", "users", "--entity-name", user),
                        *("--add-config", f"{mechanism}=[iterations=4096,password={password}]"),
                    ),
                    output=self._folder / "scram.log",
                )
                for user, password in passwords.items()
            ]
            assert [command.wait(120) for command in commands] == [0] * len(commands)

    def _write_class_archive(self) -> None:
        for node_id, broker in self.brokers.items():
            if broker.running and node_id not in self._upgraded:
                class_archives.write(self._library, broker.pid)
                return

    def _broker_argv(self, node_id: int, library: Library) -> list[str]:
        file = self._folder / f"broker-{node_id}.properties"
        inside = self._places[node_id].inside if node_id in self._places else ()
        return [*inside, *self._java("kafka.Kafka", str(file), library=library)]

    def _wait_until_forgotten(self, node_id: int) -> None:
        for broker in self.brokers.values():
            if broker.running:
                until(partial(self._sees_all, broker), f"{broker.name} forgot broker {node_id}")

    def _start(self) -> None:
        if self.mode == "kraft":
            self._format()
        for server in self.servers:
            server.start()
        try:
            with patience(_START_S):
                self.wait_until_ready()
        except TimedOutError as late:
            tails = (f"{server.name}:\n{server.log_tail(20)}" for server in self.servers)
            raise TimedOutError("\n".join((str(late), *tails))) from late

    def _sees_all(self, broker: Broker) -> bool:
        self.check()
        running = {node for node, other in self.brokers.items() if other.running}
        request = MetadataRequest(
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        with contextlib.suppress(OSError), BrokerConnection(broker.direct) as connection:
            answer = connection.ask(request, MetadataResponse)
            seen = {int(known.node_id) for known in answer.brokers}
            return running == seen and answer.controller_id >= 0
        return False

    def _addresses(self, kind: Literal["advertised", "direct"]) -> list[Address]:
        return [getattr(broker, kind) for broker in self.brokers.values()]

    def _java(
        self, main: str, *arguments: str, memory: str = "256m", library: Library | None = None
    ) -> list[str]:
        library = library or self._library
        logging = [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in _LOGGING.items()]
        return [
            "java",
            f"-Xmx{memory}",
            *self._jvm_options,
            *(class_archives.options(library) if self._quick_to_start else ()),
            *logging,
            "-cp",
            library.classpath,
            main,
            *arguments,
        ]

    def _make_zookeeper(self) -> ServerProcess:
        settings = {
            "dataDir": str(self._data / "zookeeper"),
            "clientPort": str(self._quorum_ports[0]),
            "clientPortAddress": self._quorum_host,
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
            "tickTime": "1000",
        }
        file = self._write("zookeeper", settings)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        argv = self._java(main, str(file), memory="128m")
        return ServerProcess("zookeeper", argv, self._folder / "zookeeper.log")

    def _make_broker(self, node_id: int) -> Broker:
        port, other = free_ports(2)
        place = self._places.get(node_id, Place(HOST, port, other, (), HOST))
        client, advertised = (place.host, place.port), (place.host, place.advertised)
        internal, sasl = ((place.host, port) for port in free_ports(2))
        bound = (place.bind, place.port)
        if self._apart:
            client = advertised = bound = (f"127.0.0.{node_id + 1}", place.port)
        addresses = {"CLIENTS": bound}
        if self._listeners == "two":
            addresses["INTERNAL"] = internal
        if self._with_sasl:
            addresses["SASL"] = sasl
        settings = (
            self._common_settings()
            | self._quorum_settings(node_id)
            | self._listener_settings(node_id, addresses, advertised)
            | {"log.dirs": str(self._data / f"broker-{node_id}")}
            | ({"broker.rack": f"rack-{node_id}"} if self._with_racks else {})
            | self._overrides
        )
        self._write(f"broker-{node_id}", settings)
        return Broker(
            node_id,
            self._broker_argv(node_id, self._library),
            self._folder / f"broker-{node_id}.log",
            upstream=client,
            advertised=advertised,
            direct=addresses.get("INTERNAL", client),
            sasl=addresses.get("SASL"),
        )

    def _common_settings(self) -> dict[str, str]:
        replicas = min(3, self._size)
        in_sync = min(2, self._size)
        return {
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "default.replication.factor": str(replicas),
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": str(replicas),
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": str(in_sync),
            "group.initial.rebalance.delay.ms": "0",
            # Followers hide a move behind these two when acks=all; small, moves stay quick.
            "replica.fetch.wait.max.ms": "100",
            "replica.fetch.backoff.ms": "50",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.enable": "false",
            "controlled.shutdown.retry.backoff.ms": "200",
        }

    def _quorum_settings(self, node_id: int) -> dict[str, str]:
        if self.mode == "zk":
            return {
                "broker.id": str(node_id),
                "zookeeper.connect": f"{self._quorum_host}:{self._quorum_ports[0]}",
                "zookeeper.session.timeout.ms": SESSION_MS,
                # ZooKeeper starts together with the brokers.
                "zookeeper.connection.timeout.ms": "60000",
            }
        voters = (f"{node}@{HOST}:{port}" for node, port in enumerate(self._quorum_ports, 1))
        return {
            "node.id": str(node_id),
            "process.roles": "broker,controller",
            "broker.session.timeout.ms": SESSION_MS,
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
        }

    def _listener_settings(
        self, node_id: int, addresses: Mapping[str, Address], advertised: Address
    ) -> dict[str, str]:
        bound = dict(addresses)
        told = dict(addresses) | {"CLIENTS": advertised}
        if self.mode == "kraft":
            bound["CONTROLLER"] = (HOST, self._quorum_ports[node_id - 1])
        protocols = {name: "SASL_PLAINTEXT" if name == "SASL" else "PLAINTEXT" for name in bound}
        settings = {
            "listeners": listener_list(bound),
            "advertised.listeners": listener_list(told),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in protocols.items()
            ),
            "inter.broker.listener.name": "INTERNAL" if "INTERNAL" in bound else "CLIENTS",
        }
        if "SASL" in bound:
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl.plain.sasl.jaas.config": (
                    f'{module} required user_{SASL_USER}="{SASL_PASSWORD}";'
                ),
            }
        return settings

    def _write(self, name: str, settings: Mapping[str, str]) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _format(self) -> None:
        """Give each broker's data folder its cluster id, as KRaft wants before the first start."""
        formatters = [
            processes.start(
                self._java(
                    "kafka.tools.StorageTool",
                    *("format", "-t", _KRAFT_CLUSTER_ID),
                    *("-c", str(self._folder / f"broker-{node}.properties")),
                ),
                output=broker.log,
            )
            for node, broker in self.brokers.items()
        ]
        for formatter, broker in zip(formatters, self.brokers.values(), strict=True):
            if formatter.wait(120) != 0:
                raise BrokerDiedError(f"cannot format {broker.name}:\n{broker.log_tail()}")


def listener_list(addresses: Mapping[str, Address]) -> str:
    """Listeners and their addresses, as brokers' settings have them."""
    return ",".join(f"{name}://{joined(address)}" for name, address in addresses.items())
