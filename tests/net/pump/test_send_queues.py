"""Back-pressure between real socket pairs."""

import contextlib
import errno
import os
import random
import socket
import stat
import struct
from dataclasses import replace

import pytest

from leader_hints.core.events import (
    LimitReached,
)
from leader_hints.net.pump import pump
from tests.harness.waiting import until
from tests.net import messages
from tests.net.rig import (
    LIMITS,
    Rig,
    descriptors_before,
    hinting_route,
    opaque_route,
    open_descriptors,
    opened,
    received,
    until_end,
)

_SMALL = 16_384
#: What two kernel buffers of _SMALL (doubled by Linux) on either side of the pump and one buffer
#: of the pump may hold, generously.
_KEPT_AT_MOST = 1 << 20


def _limits(rig: Rig) -> list[str]:
    return [event.limit for event in rig.events if isinstance(event, LimitReached)]


def _frames(size: int, count: int, *, up: bool) -> bytes:
    records = random.Random(size).randbytes(size)
    if up:
        return b"".join(messages.produce_request(9, n, records=records) for n in range(count))
    return b"".join(messages.fetch_response(n, records=records) for n in range(count))


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "opaque"])
def test_who_does_not_read_is_not_read_for(up: bool, reading: bool) -> None:
    count = 60
    data = _frames(100_000, count, up=up)
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route() if reading else opaque_route(), buffers=_SMALL)
        if reading and not up:
            asked = b"".join(messages.fetch_request(16, n, epoch=3) for n in range(count))
            rig.send(ends.client, asked)
            received(ends.broker)
        sender, hearer = (ends.client, ends.broker) if up else (ends.broker, ends.client)

        sent = rig.send_what_fits(sender, data)
        assert sent < _KEPT_AT_MOST

        got = bytearray()
        for _ in range(10_000):
            got += received(hearer)
            rig.spin()
            sent += rig.send_what_fits(sender, data[sent:])
            if len(got) == len(data):
                break
        assert got == data


class _Spliced:
    """Counts the bytes that the system took from a socket at our word; ``fault``: it refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fault: int = 0) -> None:
        self.bytes = 0
        self._fault = fault
        self._splice = os.splice
        monkeypatch.setattr(os, "splice", self._count)

    def _count(self, source: int, target: int, most: int, **flags: int) -> int:
        if self._fault:
            raise OSError(self._fault, "as told")
        size = self._splice(source, target, most, **flags)
        if stat.S_ISSOCK(os.fstat(source).st_mode):
            self.bytes += size
        return size


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "opaque"])
@pytest.mark.parametrize(
    "fault",
    [0, errno.EINVAL, errno.EPERM],
    ids=["moved", "cannot be moved", "may not be moved"],
)
def test_large_records_arrive_whole_however_they_are_taken(
    up: bool, reading: bool, fault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spliced = _Spliced(monkeypatch, fault)
    size, count, links = 900_000, 4, 3
    data = _frames(size, count, up=up)
    with opened(Rig()) as rig:
        route = hinting_route() if reading else opaque_route()
        ends = [rig.link(route, tcp=True) for _ in range(links)]
        pairs = [(e.client, e.broker) if up else (e.broker, e.client) for e in ends]
        for one in ends if reading and not up else ():
            rig.send(
                one.client, b"".join(messages.fetch_request(16, n, epoch=3) for n in range(count))
            )
            assert received(one.broker)
        sent, got = [0] * links, [bytearray() for _ in ends]

        def goes_on() -> bool:
            for number, (sender, hearer) in enumerate(pairs):
                with contextlib.suppress(BlockingIOError):
                    sent[number] += sender.send(memoryview(data)[sent[number] :])
                rig.spin()
                # Each takes another amount at a time, the first one little.
                with contextlib.suppress(BlockingIOError):
                    got[number] += hearer.recv(200_000 << 2 * number)
            return all(len(one) >= len(data) for one in got)

        until(goes_on, "all has arrived")
        assert got == [data] * links
        assert rig.complaints == []
        traffic = route.traffic
        assert (traffic.up if up else traffic.down) == links * len(data)
        assert rig.pump.load().queued_bytes == 0
    assert spliced.bytes > (0 if fault else links * len(data) // 2) or (fault and not spliced.bytes)


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "opaque"])
def test_a_byte_that_is_sent_as_urgent_keeps_nobody_busy(up: bool, reading: bool) -> None:
    """The system moves nothing beyond it, and says all the same that there is something."""
    data = _frames(900_000, 1, up=up)
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route() if reading else opaque_route(), tcp=True)
        if reading and not up:
            rig.send(ends.client, messages.fetch_request(16, 0, epoch=3))
            received(ends.broker)
        sender, hearer = (ends.client, ends.broker) if up else (ends.broker, ends.client)
        sent, got = 0, bytearray()

        def goes_on(end: int) -> bool:
            nonlocal sent
            with contextlib.suppress(BlockingIOError):
                sent += sender.send(memoryview(data)[sent:end])
            rig.spin()  # Fails where it does not come to rest.
            got.extend(received(hearer))
            return len(got) == end

        until(lambda: goes_on(len(data) // 2), "half of it has arrived")
        sender.send(b"!", socket.MSG_OOB)
        until(lambda: goes_on(len(data)), "all has arrived")
        # As any reader of such a connection does, none has got that byte.
        assert got == data


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
def test_what_comes_behind_an_urgent_byte_and_before_the_end_is_not_lost(up: bool) -> None:
    """There the system moves nothing, and says that this is the end."""
    data = _frames(900_000, 1, up=up)
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        if not up:
            rig.send(ends.client, messages.fetch_request(16, 0, epoch=3))
            received(ends.broker)
        sender, hearer = (ends.client, ends.broker) if up else (ends.broker, ends.client)
        got = bytearray()

        def goes_on() -> bool:
            rig.spin()
            got.extend(received(hearer))
            return len(got) == 100_000

        rig.send(sender, data[:100_000])
        until(goes_on, "what was sent has arrived")
        sender.send(b"!", socket.MSG_OOB)
        assert sender.send(data[100_000:150_000]) == 50_000
        sender.shutdown(socket.SHUT_WR)
        assert got + until_end(rig, hearer) == data[:150_000]


def test_a_client_that_takes_nothing_any_more_loses_what_was_on_its_way_and_no_other_does() -> None:
    data = _frames(900_000, 3, up=True)
    with opened(Rig()) as rig:
        before = descriptors_before()
        for _ in range(40):
            # More than there are pipes: each goes with one that is full.
            lost = rig.link(hinting_route(), tcp=True)
            rig.send_what_fits(lost.client, data)
            lost.broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            lost.close()

            def is_gone() -> bool:
                rig.spin()
                return not rig.pump.load().queued_bytes

            until(is_gone, "it is peer_closed")
        kept = rig.link(hinting_route(), tcp=True)
        got, sent = bytearray(), 0

        def goes_on() -> bool:
            nonlocal sent
            with contextlib.suppress(BlockingIOError):
                sent += kept.client.send(memoryview(data)[sent:])
            rig.spin()
            got.extend(received(kept.broker))
            return len(got) >= len(data)

        until(goes_on, "all has arrived")
        assert got == data
        kept.close()
        rig.spin()
        assert open_descriptors() <= before + 2


def test_one_direction_that_stands_still_does_not_stop_the_other() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(opaque_route(), buffers=_SMALL)
        rig.send_what_fits(ends.broker, bytes(1 << 21))
        rig.send(ends.client, b"still heard")
        assert received(ends.broker) == b"still heard"


def test_a_crowded_link_reads_no_request_until_a_response_has_come() -> None:
    asked = [messages.request(999, 0, n, b"x") for n in range(5)]
    with opened(Rig(limits=replace(LIMITS, requests_in_flight=2))) as rig:
        ends = rig.link(hinting_route())
        for one in asked:
            ends.client.send(one)
            rig.spin()
        # The first read took what was there: one request; so did the second.
        assert received(ends.broker) == asked[0] + asked[1]

        rig.send(ends.broker, messages.response(999, 0, 0, b""))
        assert received(ends.broker) == b"".join(asked[2:])


def test_the_one_request_that_may_be_under_way_comes_to_its_end_before_its_response() -> None:
    asked = messages.request(999, 0, 1, b"x")
    with opened(Rig(limits=replace(LIMITS, requests_in_flight=1))) as rig:
        ends = rig.link(hinting_route())
        for part in (asked[:-1], asked[-1:] + asked[:9], asked[9:]):
            ends.client.send(part)
            rig.spin()
        assert received(ends.broker).startswith(asked)

        rig.send(ends.broker, messages.response(999, 0, 1, b""))
        rig.send(ends.broker, messages.response(999, 0, 1, b""))
        assert received(ends.client) == messages.response(999, 0, 1, b"") * 2


def test_links_receive_little_at_a_time_while_too_much_waits_to_be_sent() -> None:
    most = 100_000
    with opened(Rig(limits=replace(LIMITS, queued_bytes=most))) as rig:
        links = [rig.link(opaque_route(), buffers=_SMALL) for _ in range(60)]
        for ends in links:
            rig.send_what_fits(ends.broker, bytes(1 << 20))
        # Without the bound each link would keep what a socket had for it at once.
        assert rig.pump.load().queued_bytes < most + pump.BUFFER_BYTES + 60 * 4096
        assert _limits(rig) == ["queued_bytes"]
        assert [e.route for e in rig.events if isinstance(e, LimitReached)] == [""]
        for ends in links:
            while received(ends.client):
                rig.spin()
        assert rig.pump.load().queued_bytes == 0
