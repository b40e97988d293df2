"""The model's brokers could have answered as real ones did, and would not without what was learnt.

Delays are not judged: the recordings were made on a machine with other work.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.world.model import learning
from tests.world.model.broker import Broker, Error
from tests.world.model.releases import RELEASES
from tests.world.model.truth import Record, Topic
from tests.world.recorded.acceptance import Acceptance, Log, Misfit
from tests.world.recorded.questions import PARTITIONS
from tests.world.recorded.recording import load, names

#: Kinds of questions, and after which events their answers change.
_APIS = ("metadata", "produce", "fetch", "offsets")
_SITUATIONS = {
    "moves": ("elect", "reassign"),
    "restarts": ("stop", "kill", "start", "upgrade"),
    "recreation": ("delete", "create"),
}


def _misfits(name: str, *, listed_until_gone: bool = True) -> Iterator[Misfit]:
    recording = load(name)
    for partition in PARTITIONS:
        log = Log(recording, partition, listed_until_gone=listed_until_gone)
        yield from Acceptance(recording, log, partition).misfits()


@pytest.mark.parametrize("name", names())
def test_the_model_could_have_answered_as_real_brokers_did(name: str) -> None:
    assert not [*map(str, _misfits(name))]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("api", _APIS)
@pytest.mark.parametrize("situation", _SITUATIONS)
def test_each_api_is_recorded_in_each_situation(name: str, api: str, situation: str) -> None:
    recording = load(name)
    ends = [event.at for event in recording.events[1:]] + [float("inf")]
    spans = [
        (event.at, end)
        for event, end in zip(recording.events, ends, strict=True)
        if event.kind in _SITUATIONS[situation]
    ]
    changed = [
        run
        for run in recording.runs
        if run.question.startswith(api) and any(begin <= run.first[0] < end for begin, end in spans)
    ]
    assert len({run.answer for run in changed}) > 1


def _without_a_look_at_metadata(patch: pytest.MonkeyPatch) -> None:
    def produce(broker: Broker, name: str, partition: int) -> Error:
        known = broker._known(name, partition)
        if isinstance(known, Error):
            return known
        return Error.NONE if known.node == broker.node else Error.NOT_LEADER_OR_FOLLOWER

    patch.setattr(Broker, "produce", produce)


def _old_brokers_answer_as_new_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RELEASES, "2.4", RELEASES["2.4"]._replace(not_available=False))


def _replicas_have_an_epoch_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(learning, "_becomes_replica", lambda log, number, node: False)


def _replicas_learn_first_with_zookeeper(patch: pytest.MonkeyPatch) -> None:
    def metadata_first(record: Record, node: int, *, kraft: bool) -> bool:
        return kraft or not isinstance(record, Topic)

    patch.setattr(learning, "metadata_first", metadata_first)


def _metadata_lists_who_is_gone_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(learning, "_passed_over", lambda log, begin, node: 0)


def _followers_answer_offsets(patch: pytest.MonkeyPatch) -> None:
    def list_offsets(broker: Broker, name: str, partition: int, epoch: int) -> Error:
        return broker._compare(name, partition, epoch, follower=True)

    patch.setattr(Broker, "list_offsets", list_offsets)


def _no_broker_is_taken_for_a_new_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(learning, "_told_all", lambda log, begin, node: 0)


def _no_broker_gives_hints(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RELEASES, "3.7", RELEASES["3.7"]._replace(hints=False))


def _without_a_leader_there_is_an_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RELEASES, "2.4", RELEASES["2.4"]._replace(leaderless_epochs=True))


def _without_a_leader_there_is_an_error(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(RELEASES, "2.4", RELEASES["2.4"]._replace(blames_listener=False))


@pytest.mark.parametrize(
    "take_back",
    [
        _without_a_look_at_metadata,
        _old_brokers_answer_as_new_ones,
        _replicas_have_an_epoch_at_once,
        _replicas_learn_first_with_zookeeper,
        _metadata_lists_who_is_gone_first,
        _followers_answer_offsets,
        _no_broker_is_taken_for_a_new_one,
        _no_broker_gives_hints,
        _without_a_leader_there_is_an_epoch,
        _without_a_leader_there_is_an_error,
    ],
)
def test_real_brokers_answered_otherwise(
    take_back: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_back(monkeypatch)
    assert any(True for name in names() for _ in _misfits(name))


def test_a_broker_that_is_stopped_is_listed_until_its_leaders_have_moved() -> None:
    assert any(True for name in names() for _ in _misfits(name, listed_until_gone=False))
