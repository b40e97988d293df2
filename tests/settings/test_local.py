"""The virtual cluster: ports that cannot be, and the host that clients get."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.address import Address
from leader_hints.settings.local import LocalSettings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listen": "127.0.0.1:0"}, "the port cannot be 0"),
        ({"listen": "0.0.0.0:19092"}, "give --advertise HOST"),
        ({"ports": {1: 19092}}, "port 19092 is used twice"),
        ({"bootstrap": []}, "at least 1 item"),
    ],
)
def test_refuses_listeners_that_cannot_be(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        LocalSettings.model_validate({"bootstrap": ["broker-1:9092"], **settings})


def test_clients_get_the_advertised_host_or_the_listeners() -> None:
    bootstrap = (Address("broker-1", 9092),)

    assert LocalSettings(bootstrap=bootstrap).host == "127.0.0.1"
    assert LocalSettings(bootstrap=bootstrap, advertise="proxy.example").host == "proxy.example"
