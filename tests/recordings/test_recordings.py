"""Recorded streams of real clients go through links in front of brokers of every kind."""

import random
import socket
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from leader_hints.core.mode import Mode
from tests.apis.messages import read_response_frame, response_frame, response_type
from tests.core.brokers import BROKERS, SYNTHETIC, F, M, P, V, route_before
from tests.core.links import Driven
from tests.fuzz.seeds import Exchanged
from tests.recordings import clients, exchanges, load

_CLIENTS = ("confluent-kafka", "java-3.5.2", "java-3.9.1", "kafka-python")
_KIP: Mapping[int, int] = {P: 10, F: 16}
_WITH_IDS: Mapping[str, Mapping[int, int]] = {
    "2.6+": {**_KIP, M: 10},
    "2.8+": {**_KIP, M: 12},
    "3.6+": _KIP,
}
#: What the plan offers each client before each kind of broker, written down once more.
_OFFERED: Mapping[str, Mapping[str, Mapping[int, int]]] = {
    "java-3.9.1": {"2.6": {P: 10, F: 12}, "2.8": _KIP, "3.4": _KIP, "3.6": _KIP, **_WITH_IDS},
    "confluent-kafka": {"2.6": {P: 10}, "2.8": _KIP, "3.4": _KIP, "3.6": _KIP, **_WITH_IDS},
    "kafka-python": {"2.6": {F: 12}},
    "java-3.5.2": {},
}
#: Version asked by a client that was raised, for one that it was recorded with.
_RAISED: Mapping[tuple[int, int], int] = {(P, 9): 10, (F, 15): 16}
#: What is sent with another number, and no other change.
_RESTAMPED: Mapping[str, Collection[tuple[int, int]]] = {
    "2.8": [(P, 10)],
    "3.4": [(P, 10)],
    "3.6": [(P, 10), (F, 16)],
    "2.8+": [(P, 10)],
    "3.6+": [(P, 10)],
}
_IDS_IN_METADATA = {(M, asked) for asked in range(10, 13)}
#: What the plan rewrites; other tests judge that, with topics that they know.
_REWRITTEN: Mapping[str, Collection[tuple[int, int]]] = {
    "2.6": {(P, 9), (P, 10), (F, 12)},
    "2.8": {(F, 13), (F, 14), (F, 15), (F, 16)},
    "3.4": {(F, 14), (F, 15), (F, 16)},
    "2.6+": {(P, 9), (P, 10), *((F, asked) for asked in range(12, 17)), *_IDS_IN_METADATA},
    "2.8+": {*((F, asked) for asked in range(13, 17)), *_IDS_IN_METADATA},
    "3.6+": {*((F, asked) for asked in range(13, 17)), *_IDS_IN_METADATA},
}
#: Links before 2.4 differ from those before 2.6 only in what is rewritten.
_RELEASES = [release for release in BROKERS if not release.startswith("2.4")]
_KINDS = [(release, Mode.ON) for release in _RELEASES] + [("3.6", Mode.OBSERVE), ("3.6", Mode.OFF)]


def test_four_clients_were_recorded_while_a_leader_moved() -> None:
    assert tuple(clients()) == _CLIENTS
    for client in _CLIENTS:
        recorded = [exchanged for talk in load(client) for exchanged in exchanges(talk)]
        keys = {int.from_bytes(exchanged.asked[4:6]) for exchanged in recorded}
        assert {0, 1, 3, 10, 11, 14, 18, 22, 26} <= keys
        assert any(not exchanged.answered for exchanged in recorded)


def test_recordings_say_nothing_of_the_machine_that_made_them() -> None:
    name = socket.gethostname().encode()
    for client in _CLIENTS:
        for talk in load(client):
            assert name not in talk.up + talk.down


@pytest.mark.parametrize("client", _CLIENTS)
@pytest.mark.parametrize(("release", "mode"), _KINDS)
def test_recorded_streams_pass_but_for_what_the_plan_names(
    client: str, release: str, mode: Mode
) -> None:
    chance = random.Random(f"{client} {release} {mode}")
    name = release
    if release not in _OFFERED[client]:
        # Ids are synthesized for those alone that can use what comes with them.
        release = release.removesuffix(SYNTHETIC)
    judged = 0
    for talk in load(client):
        talked = [
            _before(exchanged, release)
            for exchanged in exchanges(talk)
            if mode is not Mode.ON or _cell(exchanged.asked) not in _REWRITTEN.get(release, ())
        ]
        offered = _OFFERED[client].get(release, {}) if mode is Mode.ON else {}
        asked = [_asked(exchanged.asked, offered) for exchanged in talked]
        driven = Driven(
            route_before(name, mode),
            decide=lambda held: [None] * len(held.scanned.failures),
            buffer_size=chance.choice((1000, 1 << 16)),
        )
        _replay(driven, asked, [exchanged.answered for exchanged in talked], chance)
        assert driven.to_broker == b"".join(
            exchanged.asked if _cell(above) in _RESTAMPED.get(release, ()) else above
            for exchanged, above in zip(talked, asked, strict=True)
        )
        assert driven.to_client == b"".join(_raised(e, offered) for e in talked)
        assert not driven.not_understood
        driven.end()
        driven.link.close()
        assert driven.budget.used == 0
        judged += len(talked)
    assert judged > 40


def _cell(asked: bytes) -> tuple[int, int]:
    return int.from_bytes(asked[4:6]), int.from_bytes(asked[6:8])


def _before(exchanged: Exchanged, release: str) -> Exchanged:
    """Return an exchange as it is in front of a broker of a release: its ApiVersions say so."""
    if _cell(exchanged.asked)[0] != V or exchanged.answered[8:10] != bytes(2):
        return exchanged
    return exchanged._replace(answered=_with_maxima(exchanged, BROKERS[release]))


def _with_maxima(exchanged: Exchanged, maxima: Mapping[int, int]) -> bytes:
    kind = response_type(V, _cell(exchanged.asked)[1])
    answer = read_response_frame(kind, exchanged.answered)
    offers = tuple(
        replace(offer, max_version=maxima.get(offer.api_key, offer.max_version))
        for offer in answer.api_keys
    )
    number = int.from_bytes(exchanged.answered[4:8])
    return response_frame(replace(answer, api_keys=offers), number)


def _raised(exchanged: Exchanged, offered: Mapping[int, int]) -> bytes:
    """Return the response as the client gets it."""
    if _cell(exchanged.asked)[0] != V or exchanged.answered[8:10] != bytes(2):
        return exchanged.answered
    return _with_maxima(exchanged, offered)


def _asked(asked: bytes, offered: Mapping[int, int]) -> bytes:
    """Return the request as a client asks that was offered more than it was when recorded."""
    cell = _cell(asked)
    raised = _RAISED.get(cell)
    return (
        asked[:6] + raised.to_bytes(2) + asked[8:] if raised == offered.get(cell[0], 0) else asked
    )


def _replay(
    driven: Driven, asked: list[bytes], answered: list[bytes], chance: random.Random
) -> None:
    """Send requests and responses in chunks; a response only when its request has come."""
    owed: list[bytes] = []
    for request, response in zip(asked, answered, strict=True):
        driven.up(request, _cuts(request, chance))
        owed.append(response)
        while owed and (chance.random() < 0.6 or _cell(request)[0] == V):
            data = owed.pop(0)
            driven.down(data, _cuts(data, chance))
    rest = b"".join(owed)
    driven.down(rest, _cuts(rest, chance))


def _cuts(data: bytes, chance: random.Random) -> list[int]:
    return [chance.randrange(len(data)) for _ in range(chance.choice((0, 1, 6)))] if data else []
