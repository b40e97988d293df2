import pytest

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.versions.client_capabilities import (
    BUILT_IN,
    ClientTable,
    HintForm,
    client_table,
    form_names,
)

_KIP = {HintForm.PRODUCE, HintForm.FETCH}
_ALONE = {HintForm.FETCH_WITHOUT_ENDPOINTS}


def _forms(name: str, version: str) -> set[HintForm] | None:
    forms = BUILT_IN.known_forms(ClientSoftware(name, version))
    return None if forms is None else {*forms}


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("apache-kafka-java", "3.9.1", _KIP | _ALONE),
        ("apache-kafka-java", "3.7.0", _KIP | _ALONE),
        ("apache-kafka-java", "4.0.0-rc1", _KIP | _ALONE),
        ("apache-kafka-java", "3.6.2", set()),
        ("apache-kafka-java", "unknown", _KIP),
        # Confluent Platform 7.7 is Kafka 3.7.
        ("apache-kafka-java", "7.7.0-ccs", _KIP | _ALONE),
        ("apache-kafka-java", "8.0.0-ce", _KIP | _ALONE),
        ("apache-kafka-java", "7.6.3-ccs", set()),
        ("apache-kafka-java", "5.5.0-ce", set()),
        ("librdkafka", "2.5.0", _KIP),
        ("librdkafka", "2.4.1", set()),
        ("confluent-kafka-python", "2.3.0-rdkafka-2.3.0", set()),
        ("confluent-kafka-python", "2.11.0-rdkafka-2.11.0", _KIP),
        # Built with another librdkafka than its own version's.
        ("confluent-kafka-python", "2.5.0-rdkafka-2.4.0", set()),
        ("confluent-kafka-go", "2.5.0", _KIP),
        ("confluent-kafka-go", "2.4.0", set()),
        ("kgo", "v1.17.0", _KIP),
        ("kgo", "1.16.1", set()),
        ("kgo", "unknown", _KIP),
        ("kafka-python", "3.0.1", _ALONE),
        ("kafka-python", "2.2.0", set()),
        ("leader-hints", "0.1.0", _KIP),
        # More digits than Python reads as a number.
        ("librdkafka", "9" * 5000, _KIP),
        ("apache-kafka-java", "3." + "9" * 5000, set()),
    ],
)
def test_what_clients_can_use(name: str, version: str, expected: set[HintForm]) -> None:
    assert _forms(name, version) == expected


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("platformatic-kafka", "1.35.0"),
        ("sarama", "1.43.2"),
        ("kafkajs", ""),
        ("", ""),
        ("", "3.9"),
    ],
)
def test_a_name_that_is_not_known_is_no_user_of_hints(name: str, version: str) -> None:
    software = ClientSoftware(name, version)

    assert BUILT_IN.known_forms(software) is None
    assert BUILT_IN.forms(software) == set()


def test_a_client_that_names_nothing_is_no_user_of_hints() -> None:
    assert BUILT_IN.forms(None) == set()


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("confluent-kafka-javascript", "1.0.0-librdkafka-2.6.0", _KIP),
        ("confluent-kafka-javascript", "0.1.15-librdkafka-2.3.0", set()),
        ("karafka", "v2.5.0-rdkafka-ruby-v0.19.5-librdkafka-v2.8.0", _KIP),
        ("karafka", "v2.3.0-rdkafka-ruby-v0.15.0-librdkafka-v2.3.0", set()),
        ("a-service", "rdkafka-2.8.0", _KIP),
    ],
)
def test_a_binding_is_known_by_the_version_of_librdkafka(
    name: str, version: str, expected: set[HintForm]
) -> None:
    assert _forms(name, version) == expected


@pytest.mark.parametrize(
    "version", ["rdkafka", "rdkafka-", "rdkafka-ruby-v0.19", "my-ardkafka-2.8.0", "2.8.0"]
)
def test_a_version_that_only_looks_like_it_names_no_librdkafka(version: str) -> None:
    assert BUILT_IN.known_forms(ClientSoftware("a-service", version)) is None


def test_a_version_that_names_librdkafka_thousands_of_times_is_read_once() -> None:
    version = "rdkafka-2.8.0-" * 5000 + "rdkafka-2.3.0"

    assert _forms("a-service", version) == set()


def _table(*rules: tuple[str, tuple[int, ...], list[str]]) -> ClientTable:
    return client_table(rules)


def _names(table: ClientTable, name: str, version: str) -> list[str] | None:
    forms = table.known_forms(ClientSoftware(name, version))
    return None if forms is None else [*form_names(forms)]


def test_a_configuration_adds_clients() -> None:
    table = _table(("a-service", (2,), ["fetch", "produce"]), ("old", (), ["produce"]))

    assert _names(table, "a-service", "2.0.1") == ["fetch", "produce"]
    assert _names(table, "a-service", "1.9") == []
    assert _names(table, "a-service", "unknown") == ["fetch", "produce"]
    assert _names(table, "old", "anything") == ["produce"]
    assert _names(table, "another", "2.0") is None
    assert _names(table, "kgo", "v1.18.0") == ["fetch", "produce"]
    assert {"a-service", "old", "kgo"} <= table.names


def test_a_configuration_cuts_clients_by_version() -> None:
    table = _table(
        ("kgo", (1, 19), []), ("kgo", (1, 19, 2), ["produce"]), ("apache-kafka-java", (), [])
    )

    assert _names(table, "kgo", "v1.16.0") == []
    assert _names(table, "kgo", "v1.18.5") == ["fetch", "produce"]
    assert _names(table, "kgo", "v1.19.1") == []
    assert _names(table, "kgo", "v1.20.0") == ["produce"]
    assert _names(table, "apache-kafka-java", "4.0.0") == []
    assert _names(table, "apache-kafka-java", "unknown") == []


def test_what_is_configured_for_librdkafka_holds_for_its_bindings() -> None:
    table = _table(("librdkafka", (2, 8), []), ("karafka", (2, 9), ["produce"]))

    assert _names(table, "a-binding", "1.0-librdkafka-2.8.0") == []
    assert _names(table, "a-binding", "1.0-librdkafka-2.6.0") == ["fetch", "produce"]
    # Its own name counts more.
    assert _names(table, "karafka", "v2.9.0-librdkafka-v2.8.0") == ["produce"]
    assert _names(table, "karafka", "v2.8.0-librdkafka-v2.8.0") == []


def test_a_configuration_has_a_rule_for_clients_that_are_not_known() -> None:
    table = _table(("*", (), ["produce"]), ("a-service", (), []))

    assert _names(table, "sarama", "1.43") == ["produce"]
    assert table.forms(None) == {HintForm.PRODUCE}
    assert _names(table, "a-service", "1") == []
    assert _names(table, "librdkafka", "2.3.0") == []
    assert _names(table, "kgo", "v1.18.0") == ["fetch", "produce"]
    assert "*" not in table.names


def test_a_version_without_numbers_gets_no_hint_without_endpoints_unless_all_versions_do() -> None:
    alone = ["fetch_without_endpoints"]
    table = _table(("some", (1,), alone), ("all", (), alone))

    assert _names(table, "some", "unknown") == []
    assert _names(table, "all", "unknown") == alone
