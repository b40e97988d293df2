"""The table of what clients are offered, held against every response that kio knows."""

import dataclasses
import typing
from collections.abc import Iterator

import pytest
from kio.index import UnknownAPIKey, UnknownEntity, load_response_schema

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.versions.address_rewriting import NEWEST, AddressRewriting
from leader_hints.core.versions.broker_ports import BrokerPorts

#: Responses with a host that is none of a broker: those of clients, of ACLs, and of the
#: applications that Kafka Streams runs.
_OTHER_HOSTS = {15, 29, 31, 69, 77, 88, 89}
_HOST_FIELDS = {"host", "client_host"}
_MOST_KEYS, _MOST_VERSIONS = 110, 30


def _book() -> AddressRewriting:
    return AddressRewriting("here", BrokerPorts(19092, {}), lambda node, host, port: None)


def _responses() -> Iterator[tuple[int, int, type]]:
    for key in range(_MOST_KEYS):
        for version in range(_MOST_VERSIONS):
            try:
                yield key, version, load_response_schema(key, version)
            except (UnknownAPIKey, UnknownEntity):
                continue


def _says_a_host(kind: type) -> bool:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name in _HOST_FIELDS:
            return True
        if any(
            dataclasses.is_dataclass(inner) and _says_a_host(inner)
            for inner in _inner(hints[field.name])
        ):
            return True
    return False


def _inner(hint: object) -> Iterator[type]:
    arguments = typing.get_args(hint)
    if not arguments and isinstance(hint, type):
        yield hint
    for argument in arguments:
        yield from _inner(argument)


def test_every_response_that_says_a_brokers_host_is_rewritten_or_cannot_be_asked_for() -> None:
    looked_at = 0
    for key, version, kind in _responses():
        looked_at += 1
        if (
            key not in _OTHER_HOSTS
            and _says_a_host(kind)
            and AddressRewriting.offered(key, version)
        ):
            assert AddressRewriting.rewriter(key, version) is not None, (key, version)
    assert looked_at > 250


def test_what_is_not_known_is_not_offered() -> None:
    newest: dict[int, int] = {}
    for key, version, _ in _responses():
        newest[key] = max(version, newest.get(key, -1))
    for key, version in newest.items():
        assert not AddressRewriting.offered(key, version + 1) or key == ApiKey.API_VERSIONS, key
    assert not AddressRewriting.offered(max(newest) + 1, 0)
    assert not AddressRewriting.offered(ApiKey.SASL_HANDSHAKE, 0)


@pytest.mark.parametrize(
    ("key", "version"), [(55, 2), (78, 1), (79, 1), (52, 1), (53, 1), (54, 1), (59, 1), (82, 0)]
)
def test_addresses_of_the_quorum_and_of_share_groups_are_not_offered(
    key: int, version: int
) -> None:
    assert not AddressRewriting.offered(key, version)
    assert version > NEWEST.get(key, -1)


def test_endpoints_keep_their_rack() -> None:
    assert _book().endpoint(2, Endpoint("b", 1, "r")) == Endpoint("here", 19095, "r")


def test_each_address_is_reported_to_the_opener_of_listeners() -> None:
    met: list[tuple[int, str, int]] = []
    rewriting = AddressRewriting(
        "here", BrokerPorts(19092, {}), lambda node, host, port: met.append((node, host, port))
    )
    assert rewriting.readdress(2, "b", 9092) == ("here", 19095)
    assert met == [(2, "b", 9092)]
