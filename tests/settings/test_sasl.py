"""SASL: each mechanism has what it needs."""

import pytest
from pydantic import ValidationError

from leader_hints.settings.sasl import SaslSettings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mechanism": "PLAIN"}, "PLAIN needs username and password"),
        ({"mechanism": "SCRAM-SHA-256", "username": "u"}, "needs username and password"),
        ({"mechanism": "OAUTHBEARER", "username": "u"}, "OAUTHBEARER needs token"),
        ({"mechanism": "PLAIN", "username": "u", "password": "s3cret"}, "should match pattern"),
    ],
)
def test_refuses_credentials_that_lack_a_part(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        SaslSettings.model_validate(settings)


def test_takes_secrets_by_their_places() -> None:
    assert SaslSettings(mechanism="PLAIN", username="u", password="env:P").password == "env:P"
    assert SaslSettings(mechanism="OAUTHBEARER", token="file:/t").token == "file:/t"
