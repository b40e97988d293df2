"""Records real brokers: a script of events, while one thread for each broker asks it."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.harness.admin import AdminError, ClusterAdmin, TopicPartition
from tests.harness.cluster import Mode, RealCluster
from tests.harness.connection import BrokerConnection
from tests.harness.waiting import until
from tests.world.model.truth import NO_LEADER
from tests.world.recorded.asker import Asker, Knowledge
from tests.world.recorded.questions import BY_ID, HINTED, QUESTIONS, Question
from tests.world.recorded.recording import Event, Recording

#: Seconds from one round of questions to the next, and of peace after each event.
_PACE: Final = 0.006
_PEACE: Final = 1.0
_TOPIC: Final = "recorded"
_WHERE: Final = TopicPartition(_TOPIC, 0)
#: A killed broker is to be missed soon.
_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "6000",
    "broker.session.timeout.ms": "6000",
    "unclean.leader.election.enable": "true",
}
#: Versions of Metadata without ids, and with them.
_METADATA: Final = 9
_METADATA_IDS: Final = 11


class Cluster(NamedTuple):
    """``release``: by the names of the model. ``later``: the version and release that its brokers
    are upgraded to.
    """

    version: str
    mode: Mode
    release: str
    questions: Sequence[Question] = QUESTIONS
    later: tuple[str, str] = ("", "")


CLUSTERS: Final = {
    "2.4-zk": Cluster("2.4.1", "zk", "2.4"),
    "2.8-zk": Cluster("2.8.2", "zk", "2.8"),
    "3.6-zk": Cluster("3.6.2", "zk", "3.6", QUESTIONS + BY_ID),
    "3.6-kraft": Cluster("3.6.2", "kraft", "3.6", QUESTIONS + BY_ID),
    "3.7-kraft": Cluster("3.7.2", "kraft", "3.7", QUESTIONS + BY_ID + HINTED),
    "2.4-2.8-zk": Cluster("2.4.1", "zk", "2.4", later=("2.8.2", "2.8")),
}


def record(name: str) -> Recording:
    """Start a cluster, run the script and return what its brokers answered."""
    kind = CLUSTERS[name]
    with (
        tempfile.TemporaryDirectory(prefix="leader-hints-recorded-") as made,
        RealCluster(kind.version, kind.mode, folder=Path(made), overrides=_SETTINGS) as cluster,
    ):
        stage = _Stage(cluster, kind)
        stage.admin.create_topic(_TOPIC, [[1, 2]])
        stage.admin.wait_in_sync(_TOPIC)
        with stage.asking():
            (_upgrade if kind.later[0] else _run_script)(stage)
        runs = sorted(
            (run for asker in stage.askers for run in asker.runs), key=lambda run: run.first
        )
        ids = any(run.answer.id for run in runs)
        release, kraft = kind.release, kind.mode == "kraft"
        return Recording(name, release, kind.later[1], kraft, ids, stage.events, runs)


class _Stage:
    """A cluster that is asked while events happen."""

    def __init__(self, cluster: RealCluster, kind: Cluster) -> None:
        self.admin = ClusterAdmin(cluster)
        self.events: list[Event] = []
        self._cluster = cluster
        self.kraft = kind.mode == "kraft"
        self._later = kind.later[0]
        knowledge = Knowledge(_TOPIC)
        version = _METADATA if kind.release == "2.4" else _METADATA_IDS
        self.askers = [Asker(node, version, kind.questions, knowledge) for node in cluster.brokers]
        self._over = threading.Event()
        self._began = time.monotonic()
        self._failed: list[BaseException] = []

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Have all brokers asked meanwhile."""
        threads = [
            threading.Thread(target=self._ask, args=(node, asker))
            for node, asker in zip(self._cluster.brokers, self.askers, strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        assert not self._failed, self._failed

    def _now(self) -> float:
        return (time.monotonic() - self._began) * 1000

    def _ask(self, node: int, asker: Asker) -> None:
        try:
            while not self._over.is_set():
                try:
                    with self._cluster.connect(node) as connection:
                        self._ask_on(connection, asker)
                except OSError:
                    asker.gone(self._now())
                    self._over.wait(_PACE)
        except Exception as error:
            self._failed.append(error)

    def _ask_on(self, connection: BrokerConnection, asker: Asker) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            while True:
                request = asker.ask()
                asked = self._now()
                connection.socket.sendall(request)
                asker.take(asked, self._now(), connection.read_frame())
                if asker.round_is_over:
                    break
            self._over.wait(max(began + _PACE - time.monotonic(), 0))

    def _begin(self, kind: str, node: int = 0) -> None:
        assert not self._failed, self._failed
        time.sleep(_PEACE)
        self.events.append(Event(round(self._now(), 1), kind, node))

    # What happens.

    def move(self, to: int) -> None:
        """Put another replica first, and elect it."""
        self._begin("reorder", to)
        targets = self.admin.raise_epochs({_WHERE: to})
        self._begin("elect", to)
        self.admin.elect_preferred(targets)

    def reassign(self, *replicas: int) -> None:
        """Give the partition other replicas, of which the first leads."""
        self._begin("reassign", replicas[0])
        self.admin.reassign(_WHERE, replicas)

    def stop(self, node: int) -> None:
        """End a broker, which hands its leaderships over."""
        self._begin("stop", node)
        self._cluster.brokers[node].stop()

    def kill(self, node: int) -> None:
        """End a broker at once, and wait until another leads."""
        self._begin("kill", node)
        self._cluster.brokers[node].kill()
        until(lambda: self.admin.leader(_TOPIC) != node, "another broker leads")

    def orphan(self, node: int) -> None:
        """End a broker at once that alone is in sync, and wait until there is no leader."""
        self._begin("kill", node)
        self._cluster.brokers[node].kill()
        until(lambda: self._shown_leader() == NO_LEADER, "there is no leader")

    def start(self, node: int) -> None:
        """Start a broker again."""
        self.start_alone(node)
        self.admin.wait_in_sync(_TOPIC)

    def start_alone(self, node: int) -> None:
        """Start a broker again, while others are not there."""
        self._cluster.wait_until_ready()
        self._begin("start", node)
        self._cluster.restart(node)
        until(lambda: self.admin.leader(_TOPIC), "somebody leads")

    def freeze(self, node: int) -> None:
        """Have a broker stand still until another leads, and go on then."""
        self._begin("freeze", node)
        with self._cluster.brokers[node].frozen():
            until(lambda: self._shown_leader() not in (node, NO_LEADER), "another broker leads")
        self.events.append(Event(round(self._now(), 1), "thaw", node))
        self._cluster.wait_until_ready()
        self.admin.wait_in_sync(_TOPIC)

    def _shown_leader(self) -> int:
        # The last broker has no replica, and is never ended.
        return self.admin.partitions(_TOPIC, max(self._cluster.brokers))[0].leader

    def upgrade(self, node: int, protocol: str) -> None:
        """Start a broker again as one of the later version; ``protocol``: what brokers speak."""
        self.stop(node)
        self._cluster.wait_until_ready()
        self._begin("upgrade", node)
        self.askers[node - 1].version = _METADATA_IDS
        settings = {"inter.broker.protocol.version": protocol}
        self._cluster.upgrade(node, self._later, settings)
        self.admin.wait_in_sync(_TOPIC)

    def grow(self, *replicas: int) -> None:
        """Add a partition."""
        self._begin("grow")
        self.admin.add_partition(_TOPIC, replicas)

    def recreate(self, *replicas: int) -> None:
        """Delete the topic, and create it again when no broker knows it any more."""
        self._begin("delete")
        self.admin.delete_topic(_TOPIC)
        # Only the first attempt is an event: all brokers have forgotten the topic by now.
        self.events.append(Event(round(self._now(), 1), "create", replicas[0]))
        until(lambda: self._created(replicas), "the topic is there again")

    def _created(self, replicas: tuple[int, ...]) -> bool:
        # ZooKeeper has a deleted topic for longer than the brokers.
        with contextlib.suppress(AdminError):
            self.admin.create_topic(_TOPIC, [replicas])
            return True
        return False


def _run_script(stage: _Stage) -> None:
    for _ in range(3):
        stage.move(2)
        stage.move(1)
    stage.reassign(2, 3)
    stage.reassign(3, 1)
    stage.reassign(1, 2)
    stage.grow(2, 1)
    stage.stop(1)
    stage.start(1)
    stage.move(1)
    stage.kill(1)
    stage.start(1)
    stage.recreate(2, 1)
    stage.move(1)
    stage.recreate(1, 2)
    stage.move(2)
    stage.stop(2)
    stage.start(2)
    stage.freeze(1)
    stage.move(1)
    if not stage.kraft:
        # With KRaft the brokers are controllers as well, and one of three is not enough.
        _elect_uncleanly(stage)
    time.sleep(_PEACE)


def _elect_uncleanly(stage: _Stage) -> None:
    stage.stop(2)
    stage.orphan(1)
    stage.start_alone(2)
    stage.start(1)


def _upgrade(stage: _Stage) -> None:
    stage.move(2)
    for protocol in ("2.4", "2.8"):
        for node in (1, 2, 3):
            stage.upgrade(node, protocol)
            stage.move(2)
            stage.move(1)
    stage.recreate(2, 1)
    stage.move(1)
    time.sleep(_PEACE)
