"""One client before one broker version: all features, while leaders move."""

import importlib
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from leader_hints.apis.keys import api_name
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_ends
from tests.harness.clients import AdminSpec, ClientProcess, OffsetsRun, OffsetsSpec
from tests.harness.cluster import RealCluster
from tests.harness.connection import decode_response
from tests.harness.history import LeaderHistory
from tests.harness.judge import REASONS, Judgement, judge
from tests.matrix.brokers import BrokerKind
from tests.matrix.features import Feature
from tests.matrix.lanes import FETCH, lanes_for, results_of
from tests.matrix.results import Cell
from tests.matrix.roster import Client
from tests.matrix.watch import MetadataGate, Used, watch
from tests.real.sandwich import API_VERSIONS, Sandwich, of_client

MOVES = 2
PRODUCE, LIST_OFFSETS, METADATA = 0, 2, 3
_TOLD_APIS = (PRODUCE, FETCH, LIST_OFFSETS, METADATA)
#: LEADER_NOT_AVAILABLE and OFFSET_NOT_AVAILABLE: the end is not known for the moment (KIP-207).
_REFUSED = (5, 78)
_ASSIGNMENT = ((1, 2, 3),)
#: The first leader of the topics that are watched.
_FIRST_LEADER = 1
#: Times that a client may be watched. An error gets no hint where brokers take longer to learn of a
#: move than it may be held: now and then on a fast machine, mostly on an overloaded one.
_WATCHES = 10
_ADMIN_CALLS = ["create", "describe", "grow", "settings", "delete"]
_ERROR_LENGTH = 300
_numbers = itertools.count(1)


class CellRun:
    """A cell at work."""

    def __init__(self, broker: BrokerKind, cluster: RealCluster, client: Client) -> None:
        self._broker = broker
        self._cluster = cluster
        self._client = client
        self._admin = ClusterAdmin(cluster)
        self._number = next(_numbers)
        self._gate = MetadataGate()
        self._lanes = lanes_for(client, self._number)
        self._features: dict[Feature, str] = {}
        self._names: list[str] = []
        self._refused: Counter[str] = Counter()
        self._expected = Used.expected(client, broker)
        self._used = "not known"
        self._judgement = Judgement(0, [], Counter(), Counter(), 0.0)
        self._versions: dict[str, list[str]] = {}
        self._raw: Counter[str] = Counter()

    def run(self, folder: Path, moves: int = MOVES) -> Cell:
        """Do all; what fails is in the result. ``folder`` gets the logs."""
        began = time.monotonic()
        # What stands around the features, proxies and their logs included.
        self._attempt(Feature.HINTS, lambda: self._run_behind_proxies(folder, moves))
        features = self._features | results_of(self._lanes)
        return Cell(
            broker=self._broker.name,
            client=self._client.name,
            features={
                feature: features.get(feature, "not reached")[:_ERROR_LENGTH]
                for feature in Feature
                if feature not in self._client.lacks
            },
            versions=self._versions,
            moves=moves,
            records=sum(lane.records for lane in self._lanes),
            given=self._judgement.given,
            missed=dict(self._judgement.missed),
            waited=dict(self._judgement.waited),
            used=self._used,
            refused_offsets=dict(self._refused),
            passed_raw=dict(self._raw),
            seconds=round(time.monotonic() - began, 1),
        )

    def _run_behind_proxies(self, folder: Path, moves: int) -> None:
        self._admin.create_topics(
            dict.fromkeys(
                (*(lane.topic for lane in self._lanes), *self._watched_topics), _ASSIGNMENT
            ),
            {"min.insync.replicas": "2"},
        )
        config = folder / "leader-hints.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        topic_ids = "synthesize" if self._broker.synthesize else "broker"
        config.write_text(f"topic_ids: {topic_ids}\nhold: {{settle: true}}\n")
        arguments = ["--config", str(config)]
        with Sandwich(
            self._cluster, folder, gate=self._gate, sidecars=True, arguments=arguments
        ) as sandwich:
            if self._broker.synthesize:
                sandwich.fleet.wait_ids_offered()
            with self._client.start(folder) as process:
                self._work(process, sandwich, moves)
            self._judgement = judge(sandwich.fleet, LeaderHistory(self._cluster))
            self._versions = self._read_versions(sandwich)
            for labels, count in sandwich.fleet.samples("leader_hints_passed_raw_total"):
                self._raw[labels["reason"]] += int(count)
        self._check_hints()

    @property
    def _watched_topics(self) -> tuple[str, str]:
        label = f"watch-{self._client.name}-{self._number}"
        return f"{label}-produce", f"{label}-fetch"

    def _work(self, process: ClientProcess, sandwich: Sandwich, moves: int) -> None:
        bootstrap = self._cluster.bootstrap
        for lane in self._lanes:
            lane.begin(process, bootstrap)
        for lane in self._lanes:
            lane.wait_started(sandwich)
        asked = self._lanes[0].topic
        offsets = process.ask_offsets(OffsetsSpec(bootstrap, asked))
        for _ in range(moves):
            self._flow(offsets)
            self._admin.move_leaders({lane.partition: None for lane in self._lanes})
        self._flow(offsets)
        self._attempt(Feature.END_OFFSETS, lambda: self._check_offsets(offsets, sandwich))
        for lane in self._lanes:
            lane.ask_to_stop()
        for lane in self._lanes:
            lane.wait_stopped()
        for lane in self._lanes:
            lane.check(self._admin)
        for lane in self._lanes:
            lane.wait_ended()
        self._attempt(Feature.ADMIN, lambda: self._administer(process, bootstrap))
        self._attempt(Feature.USE, lambda: self._watch(process, bootstrap, sandwich))
        self._names = [name for lane in self._lanes for name in lane.names]
        self._cluster.check()

    def _flow(self, offsets: OffsetsRun) -> None:
        for lane in self._lanes:
            lane.want_flow()
        for lane in self._lanes:
            lane.flow()
        self._attempt(Feature.END_OFFSETS, lambda: offsets.wait_ends(1))

    def _check_offsets(self, offsets: OffsetsRun, sandwich: Sandwich) -> None:
        offsets.stop()
        check_ends(offsets)
        # Where ids are synthetic, Metadata differs on the same connections.
        if not self._broker.synthesize:
            assert sandwich.wait_unchanged(of_client(offsets.name), API_VERSIONS) > 0
        for relay in sandwich.before.values():
            for talk in relay.conversations:
                for request, frame in talk.responses():
                    if request.api_key == LIST_OFFSETS and request.client_id == offsets.name:
                        self._refused.update(_refused(request.api_version, frame))

    def _administer(self, process: ClientProcess, bootstrap: str) -> None:
        topic = f"admin-{self._client.name}-{self._number}"
        run = process.administer(AdminSpec(bootstrap, topic)).wait_done()
        assert run.called == _ADMIN_CALLS, f"only {run.called}"

    def _watch(self, process: ClientProcess, bootstrap: str, sandwich: Sandwich) -> None:
        used = Used(produce=False, fetch=False)
        for number in range(_WATCHES):
            if number:
                where = [TopicPartition(topic, 0) for topic in self._watched_topics]
                self._admin.move_leaders(dict.fromkeys(where, _FIRST_LEADER))
            seen = watch(
                process,
                bootstrap,
                self._client.producer_settings,
                self._admin,
                sandwich,
                self._gate,
                self._expected,
                self._watched_topics,
            )
            used = Used(used.produce or seen.produce, used.fetch or seen.fetch)
            if used == self._expected:
                break
        self._used = str(used)
        assert used == self._expected, f"used: {used}, expected: {self._expected}"

    def _check_hints(self) -> None:
        judgement = self._judgement
        assert not judgement.wrong, f"wrong: {judgement.wrong[:3]}"
        assert judgement.missed.keys() <= REASONS, f"missed: {judgement.missed}"
        takes = self._client.uses.produce or self._expected.fetch
        wanted = takes and not self._broker.native
        assert (judgement.given > 0) == wanted, f"hints for {self._client.name}: {judgement}"

    def _read_versions(self, sandwich: Sandwich) -> dict[str, list[str]]:
        """Which versions the client's producers and consumers asked, and what was sent for them."""
        sent: dict[tuple[str, int], set[int]] = defaultdict(set)
        for labels, count in sandwich.fleet.samples("leader_hints_requests_total"):
            if count and labels["asked"].isdecimal():
                sent[labels["api"], int(labels["asked"])].add(int(labels["sent"]))
        asked: dict[int, set[int]] = defaultdict(set)
        for relay in sandwich.before.values():
            for request in relay.requests():
                if request.api_key in _TOLD_APIS and request.client_id in self._names:
                    asked[request.api_key].add(request.api_version)
        return {
            api_name(key): [
                _version_text(version, sent[api_name(key), version])
                for version in sorted(asked[key])
            ]
            for key in _TOLD_APIS
        }

    def _attempt(self, feature: Feature, work: Callable[[], object]) -> None:
        """Do a part and note how its feature fares; not again once it failed."""
        if self._features.get(feature):
            return
        try:
            work()
            self._features[feature] = ""
        except (AssertionError, OSError) as failure:
            self._features[feature] = str(failure) or repr(failure)


def _version_text(asked: int, sent: set[int]) -> str:
    others = sorted(sent - {asked})
    return f"{asked} as {', '.join(map(str, others))}" if others else str(asked)


def _refused(version: int, frame: bytes) -> Sequence[str]:
    """The error codes of KIP-207 in a ListOffsets answer."""
    schema = importlib.import_module(f"kio.schema.list_offsets.v{version}.response")
    answer = decode_response(frame, schema.ListOffsetsResponse)
    codes = (
        partition.error_code.value for topic in answer.topics for partition in topic.partitions
    )
    return [str(code) for code in codes if code in _REFUSED]


def run_cell(
    broker: BrokerKind, cluster: RealCluster, client: Client, folder: Path, moves: int = MOVES
) -> Cell:
    """Run one cell before a cluster that runs; ``folder`` gets the logs."""
    return CellRun(broker, cluster, client).run(folder, moves)
