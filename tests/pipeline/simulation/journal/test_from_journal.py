"""A fleet from a journal."""

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.fleet import Reassignment
from leader_hints_report.simulation.journal import from_journal
from leader_hints_report.simulation.journal.from_journal import (
    Move,
    Recovery,
    fleet_from,
    read_journal,
)
from tests.pipeline.fleets import Made

#: Each of 20 partitions moves twice, ten together, a minute apart.
_MOVES = [
    Move("t", (turn * 10 + number) % 20, 2, 1, 1000.0 + 60 * turn + number / 100)
    for turn in range(4)
    for number in range(10)
]


def _recoveries(lost_ms: float, many: int = 40, **changed: object) -> list[Recovery]:
    one = Recovery("a", "apache-kafka-java", "3.6.2", "Produce", "t", 0, lost_ms, False)
    return [
        one._replace(client_id=client, partition=number % 20, **changed)  # type: ignore[arg-type]
        for client in ("a", "b")
        for number in range(many)
    ]


def test_topics_clients_and_moves_are_the_journals() -> None:
    taken = fleet_from(_MOVES, _recoveries(150))
    fleet = taken.fleet
    assert fleet.topics[0].partitions == 20
    assert [(one.role, one.count) for one in fleet.clients] == [("producer", 2)]
    assert isinstance(fleet.event, Reassignment)
    assert fleet.event.batch == 10
    assert fleet.event.batch_pause_s == pytest.approx(60, abs=1)
    assert "40 moves in 4 batches" in taken.notes[0]


def test_metadata_is_as_late_as_clients_took() -> None:
    late = [
        fleet_from(_MOVES, _recoveries(lost)).fleet.parameters.late_metadata_ms
        for lost in (50, 500, 2000)
    ]
    assert late[0] == 0
    assert late == sorted(late)
    assert late[2] > late[1] > 0


def test_a_client_that_met_few_moves_sends_little() -> None:
    few, all_of_them = (
        fleet_from(_MOVES, _recoveries(150, many)).fleet.clients[0].records_per_second
        for many in (4, 40)
    )
    assert few < all_of_them / 5


@pytest.mark.parametrize("version", ["dev", "3.²", "9" * 5000], ids=["dev", "3.²", "long"])
def test_a_version_that_is_no_number_is_left_out_alone(version: str) -> None:
    (strange,) = [one._replace(client_id="c", version=version) for one in _recoveries(150)[:1]]
    taken = fleet_from(_MOVES, [*_recoveries(150), strange])
    assert [one.version for one in taken.fleet.clients] == ["3.6.2"]
    assert "1 clients of software that is not known" in taken.notes[0]


def test_it_is_said_of_what_only_the_newest_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_journal, "_MOST_ROWS", len(_MOVES))
    notes = fleet_from(_MOVES, _recoveries(150, many=10)).notes
    assert [note for note in notes if "newest" in note] == [
        "Of the journal's moves only the newest 40 were read."
    ]


def test_a_rate_is_one_that_a_fleet_takes() -> None:
    moves = [*_MOVES, Move("t", 900_000, 2, 1, 1300.0)]
    taken = fleet_from(moves, _recoveries(1))
    assert taken.fleet.clients[0].records_per_second == 1e9


def test_what_a_journal_has_too_much_of_is_not_laid_to_a_file() -> None:
    moves = [*_MOVES, Move("t", 2_000_000, 2, 1, 1300.0)]
    with pytest.raises(PipelineError, match=r"--journal: topics\.0\.partitions"):
        fleet_from(moves, _recoveries(100))


def test_clients_that_lost_nothing_are_fitted() -> None:
    taken = fleet_from(_MOVES, _recoveries(0))
    assert taken.fleet.parameters.late_metadata_ms == 0
    assert ", 0 ms in the mean without a hint; the model has " in taken.notes[0]


def test_a_client_that_no_move_meets_in_the_model_is_not_fitted_to() -> None:
    # One of 1,001 partitions has a client, and two move.
    moves = [Move("big", 999, 2, 1, 1000.0), Move("t", 0, 2, 1, 1000.0)]
    with pytest.raises(PipelineError, match="no client met a move in the model"):
        fleet_from(moves, _recoveries(100, many=1))


def test_what_does_not_say_enough_is_refused() -> None:
    with pytest.raises(PipelineError, match="no known client of a topic that had moves"):
        fleet_from(_MOVES, _recoveries(100, topic="other"))
    with pytest.raises(PipelineError, match="no leader moves"):
        fleet_from([], _recoveries(100))
    with pytest.raises(PipelineError, match="take a journal of mode observe"):
        fleet_from(_MOVES, _recoveries(100, helped=True))
    with pytest.raises(PipelineError, match="no known client"):
        fleet_from(_MOVES, _recoveries(100, software="own"))


def test_a_journal_is_read(
    spark: SparkSession, made: Made, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("simulate")
    taken = read_journal(spark, str(made.folder / "journal"), str(out))
    assert taken.fleet.clients
    assert taken.fleet.cluster.brokers > 1
