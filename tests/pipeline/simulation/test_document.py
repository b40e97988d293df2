"""The document: tables and JSON."""

from leader_hints_report.simulation.arms import Mode, arms
from leader_hints_report.simulation.clients import all_rules
from leader_hints_report.simulation.document import (
    TABLES,
    Forecast,
    busiest,
    by_broker,
    client_table,
    markdown,
    number,
    parameter_table,
    summary,
)
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.sweep import sweep
from tests.pipeline.simulation.fleets import small


def forecast() -> Forecast:
    """Return a small one."""
    of = arms(small(), (Mode.NO_PROXY, Mode.HINTS), ("pause_s=600",))
    return Forecast(version=1, fleet=small(), seeds=[1, 2], arms=sweep(of, [1, 2]), notes=["Note."])


def test_json_is_read_as_it_was_written() -> None:
    of = forecast()
    assert Forecast.model_validate_json(of.model_dump_json()) == of


def test_tables_have_a_line_for_each_arm() -> None:
    text = markdown(forecast())
    assert text.count("| hints, pause_s=600 ") == len(TABLES) + 2
    assert text.endswith("Note.")


def test_the_busiest_second_and_brokers_are_named() -> None:
    arms_of = forecast().arms
    rows = {(row[0], row[1]): row for row in busiest(arms_of)}
    assert ("no-proxy", "ListOffsets") not in rows, "nobody sends any"
    (load,) = [one for one in arms_of[1].load if one.api == "ListOffsets"]
    assert rows["hints", "ListOffsets"][2] == f"{load.busiest.broker}"
    brokers = [row[2] for row in by_broker(arms_of) if row[:2] == ["hints", "ListOffsets"]]
    assert sorted(brokers) == ["0", "1", "2"]
    assert load.peak[int(brokers[0])] == max(load.peak)


def test_the_summary_counts_clients_of_all_topics() -> None:
    assert summary(small()) == (
        "rolling restart of 3 brokers (3.6, zookeeper), 42 partitions, 9 producers, 9 consumers"
    )


def test_a_topic_that_is_named_twice_has_its_clients_once() -> None:
    clients = [{"name": "c", "role": "consumer", "topics": ["u", "u"]}]
    assert summary(small(clients=clients)).endswith("0 producers, 2 consumers")


def test_numbers_have_the_digits_that_they_are_worth() -> None:
    assert [number(value) for value in (0.1234, 12.34, 123.4, 999.4, 999.6, 1234.5)] == [
        "0.123",
        "12.3",
        "123",
        "999",
        "1000",
        "1234",
    ]


def test_the_table_has_all_parameters() -> None:
    assert len(parameter_table().splitlines()) == 2 + len(Parameters.model_fields)


def test_each_software_and_its_changes_are_in_the_table_of_clients() -> None:
    rows = [line.split(" | ") for line in client_table().splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == [name for name, _, _ in all_rules()]
    assert ["| librdkafka", "2.5", "Produce, Fetch", "100"] in [row[:4] for row in rows]
