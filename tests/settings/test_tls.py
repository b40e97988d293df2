"""TLS: what needs a certificate, and names that cannot be in one."""

import pytest
from pydantic import ValidationError

from leader_hints.settings.tls import BrokerTlsSettings, ClientTlsSettings


def test_clients_that_speak_tls_need_a_certificate() -> None:
    with pytest.raises(ValidationError, match="mode terminate needs certificate"):
        ClientTlsSettings(mode="terminate")


@pytest.mark.parametrize("name", ["", "b.example", "192.0.2.1", "2001:db8::1"])
def test_takes_a_name_that_a_certificate_may_have(name: str) -> None:
    assert BrokerTlsSettings(server_name=name).server_name == name


@pytest.mark.parametrize("name", [".b.example", "1.2.3", "a..b", ":1"])
def test_refuses_a_name_that_no_certificate_has(name: str) -> None:
    with pytest.raises(ValidationError, match="neither a host name nor an IP address"):
        BrokerTlsSettings(server_name=name)
