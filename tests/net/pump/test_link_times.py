"""Links that take too long."""

import contextlib
import select
import socket
from dataclasses import replace

import pytest

from leader_hints.core.events import LimitReached
from tests.harness.waiting import until
from tests.net import messages
from tests.net.rig import (
    LIMITS,
    Rig,
    ended,
    hinting_route,
    opaque_route,
    opened,
)

_SMALL = 16_384


def _limits(rig: Rig) -> list[str]:
    return [event.limit for event in rig.events if isinstance(event, LimitReached)]


def test_a_client_that_says_nothing_is_closed_and_one_that_said_a_byte_is_not() -> None:
    with opened(Rig(limits=replace(LIMITS, first_bytes=30))) as rig:
        silent, spoke = rig.link(hinting_route()), rig.link(hinting_route())
        rig.send(spoke.client, b"\0")
        rig.sweep(29)
        assert not ended(silent.client)
        rig.sweep(30)
        assert ended(silent.client)
        assert ended(silent.broker)
        assert not ended(spoke.client)
        (event,) = (e for e in rig.events if isinstance(e, LimitReached))
        assert (event.route, event.limit, event.client) == ("r", "first_bytes_ms", "a client")


def test_a_later_link_has_its_own_time() -> None:
    with opened(Rig(limits=replace(LIMITS, first_bytes=30))) as rig:
        rig.sweep(100)
        ends = rig.link(hinting_route())
        rig.sweep(129)
        assert not ended(ends.client)
        rig.sweep(130)
        assert ended(ends.client)


@pytest.mark.parametrize("side", ["client", "broker"])
def test_a_link_without_a_byte_in_either_direction_is_closed(side: str) -> None:
    with opened(Rig(limits=replace(LIMITS, idle=60))) as rig:
        ends = rig.link(opaque_route())
        for now in range(0, 300, 50):
            rig.sweep(now)
            rig.send(getattr(ends, side), b"x")
            assert not ended(ends.client)
            assert not ended(ends.broker)
        rig.sweep(300)
        rig.sweep(359)
        assert not ended(ends.client)
        rig.sweep(360)
        assert ended(ends.client)
        assert _limits(rig) == ["idle_ms"]


def test_without_limits_nobody_is_closed_however_long_it_takes() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        for now in (0.0, 1e6, 1e9):
            rig.sweep(now)
        assert not ended(ends.client)


def test_a_client_that_never_reads_loses_its_link_when_the_broker_has_closed() -> None:
    with opened(Rig(limits=replace(LIMITS, linger=30))) as rig:
        ends = rig.link(opaque_route(), buffers=_SMALL)
        rig.send_what_fits(ends.broker, bytes(1 << 20))
        assert rig.pump.load().queued_bytes > 0
        ends.broker.close()
        rig.spin()
        rig.sweep(0)
        rig.sweep(29)
        assert _limits(rig) == []
        rig.sweep(30)
        assert _limits(rig) == ["linger_ms"]
        assert rig.pump.load().queued_bytes == 0


@pytest.mark.parametrize("buffers", [_SMALL, None], ids=["the proxy's", "the system's"])
def test_a_client_that_asks_on_and_never_reads_keeps_no_link_whose_broker_has_closed(
    buffers: int | None,
) -> None:
    """What it says then goes nowhere, and shows no progress.

    ``buffers``: they decide in whose memory the answer waits for it.
    """
    with opened(Rig(limits=replace(LIMITS, linger=30))) as rig:
        ends = rig.link(opaque_route(), tcp=True, buffers=buffers)
        ends.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
        rig.send_what_fits(ends.broker, bytes(700_000))
        ends.broker.close()
        for now in range(0, 100, 5):
            with contextlib.suppress(ConnectionError):
                ends.client.send(b"on")
            rig.spin()
            rig.sweep(now)
        assert not rig.pump.has(1)
        assert _limits(rig) == ["linger_ms"]


def test_a_client_that_reads_slowly_gets_all_that_a_broker_said_before_it_closed() -> None:
    with opened(Rig(limits=replace(LIMITS, linger=30))) as rig:
        ends = rig.link(opaque_route(), tcp=True, buffers=_SMALL)
        sent = rig.send_what_fits(ends.broker, bytes(1 << 20))
        ends.broker.close()
        got, now = 0, 0.0
        while got < sent:
            rig.spin()
            until(lambda: select.select([ends.client], [], [], 0)[0], "there are bytes")
            # Slow, but there is progress within each linger.
            chunk = ends.client.recv(4096)
            assert chunk
            got += len(chunk)
            now += 2
            rig.sweep(now)
        assert got == sent
        rig.spin()
        assert ended(ends.client)
        assert _limits(rig) == []


def test_a_broker_that_never_answers_a_client_that_has_gone_costs_the_link_for_a_while_only() -> (
    None
):
    with opened(Rig(limits=replace(LIMITS, linger=30))) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, messages.produce_request(10, 1))
        ends.client.close()
        rig.spin()
        rig.sweep(1)
        assert not _limits(rig)
        rig.sweep(31)
        assert _limits(rig) == ["linger_ms"]


def test_a_client_that_went_while_it_was_not_read_is_noticed() -> None:
    """Its broker reads no more, so neither is it read: its end stands behind what it said."""
    with opened(Rig(limits=replace(LIMITS, linger=30))) as rig:
        ends = rig.link(opaque_route(), buffers=_SMALL)
        rig.send_what_fits(ends.client, bytes(1 << 20))
        ends.client.close()
        rig.spin()
        rig.sweep(1)
        rig.sweep(31)
        assert _limits(rig) == ["linger_ms"]
        assert ended(ends.broker)
