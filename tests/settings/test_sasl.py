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
        ({"mechanism": "OAUTHBEARER", "token": "env:T", "token_endpoint": "http://a"}, "not both"),
        (
            {"mechanism": "OAUTHBEARER", "token_endpoint": "http://a", "client_id": "a"},
            "token_endpoint needs client_id and client_secret",
        ),
        ({"mechanism": "GSSAPI"}, "GSSAPI needs keytab or ticket_cache"),
        ({"mechanism": "GSSAPI", "keytab": "/k"}, "keytab needs principal"),
        (
            {"mechanism": "GSSAPI", "keytab": "/k", "principal": "p", "ticket_cache": "/c"},
            "not both",
        ),
    ],
)
def test_refuses_credentials_that_lack_a_part(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        SaslSettings.model_validate(settings)


def test_takes_secrets_by_their_places() -> None:
    assert SaslSettings(mechanism="PLAIN", username="u", password="env:P").password == "env:P"
    assert SaslSettings(mechanism="OAUTHBEARER", token="file:/t").token == "file:/t"


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://idp.example.com", (True, "idp.example.com:443", "/")),
        ("http://10.0.0.1:8080/a/b?c=d", (False, "10.0.0.1:8080", "/a/b?c=d")),
        ("https://[::1]/token", (True, "[::1]:443", "/token")),
        ("https://[::1]:9/token", (True, "[::1]:9", "/token")),
        ("https://idp?c=d", (True, "idp:443", "/?c=d")),
    ],
)
def test_reads_where_a_token_endpoint_is(url: str, parts: tuple[bool, str, str]) -> None:
    read = SaslSettings(token_endpoint=url).token_url
    assert (read.tls, str(read.address), read.target) == parts


@pytest.mark.parametrize(
    "url",
    [
        "idp.example.com/token",
        "ftp://idp/token",
        "https://",
        "https://user:hunter2@idp/token",
        "https://idp/token#part",
        "https://idp/a b",
        "https://idp:99999/token",
        "https://i_d..p/",
        "https://idp/\u00fc",
    ],
)
def test_refuses_what_is_no_url(url: str) -> None:
    with pytest.raises(ValidationError):
        SaslSettings(token_endpoint=url)
