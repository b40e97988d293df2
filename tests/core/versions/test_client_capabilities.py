import pytest

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.versions.client_capabilities import HintForm, hint_forms

_KIP = {HintForm.PRODUCE, HintForm.FETCH}
_ALONE = {HintForm.FETCH_WITHOUT_ENDPOINTS}


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("apache-kafka-java", "3.9.1", _KIP | _ALONE),
        ("apache-kafka-java", "3.7.0", _KIP | _ALONE),
        ("apache-kafka-java", "4.0.0-rc1", _KIP | _ALONE),
        ("apache-kafka-java", "3.6.2", set()),
        ("apache-kafka-java", "unknown", _KIP),
        ("librdkafka", "2.5.0", _KIP),
        ("librdkafka", "2.4.1", set()),
        ("confluent-kafka-python", "2.3.0-rdkafka-2.3.0", set()),
        ("confluent-kafka-python", "2.11.0-rdkafka-2.11.0", _KIP),
        ("kgo", "v1.17.0", _KIP),
        ("kgo", "1.16.1", set()),
        ("kgo", "unknown", _KIP),
        ("kafka-python", "3.0.1", _ALONE),
        ("kafka-python", "2.2.0", set()),
        ("sarama", "1.40", _KIP),
        # More digits than Python reads as a number.
        ("librdkafka", "9" * 5000, _KIP),
        ("apache-kafka-java", "3." + "9" * 5000, set()),
    ],
)
def test_what_clients_can_use(name: str, version: str, expected: set[HintForm]) -> None:
    assert hint_forms(ClientSoftware(name, version)) == expected


def test_a_client_that_says_nothing_is_offered_what_the_kip_has() -> None:
    assert hint_forms(None) == _KIP
