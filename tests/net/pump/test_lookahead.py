"""Sockets that are looked into before anything is received, and links whose brokers' are."""

import contextlib
import errno
import select
import socket
from collections.abc import Callable, Iterator

import pytest

from leader_hints.core.link.ahead import Ahead
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.pump.lookahead import Lookahead
from leader_hints.wire.steps import at_once
from tests.harness.waiting import until
from tests.net import messages
from tests.net.messages import NOT_LEADER
from tests.net.pump.holding import moving_route
from tests.net.rig import Rig, hinting_route, opened, received, reset, socket_pair, until_end

_PEEK_OFF = 42
_SIZE = 200_000


def _can_look() -> bool:
    ours, far = socket_pair(tcp=True)
    with ours, far:
        return Lookahead().peek(ours, Ahead(0, 1, 1)) is not None


_NEEDS_LINUX_6_9 = pytest.mark.skipif(not _can_look(), reason="TCP has SO_PEEK_OFF since Linux 6.9")


class _Counting(socket.socket):
    """Counts what is received of it; ``looks``: as since Linux 6.9."""

    count = 0
    looks = True

    def recv_into(self, *args: object, **options: object) -> int:
        size = super().recv_into(*args, **options)  # type: ignore[arg-type]
        self.count += size
        return size

    def setsockopt(self, *args: object) -> None:
        if args[1] == _PEEK_OFF and not self.looks:
            raise OSError(errno.EOPNOTSUPP, "not for TCP")
        super().setsockopt(*args)  # type: ignore[call-overload]


class _Lane:
    """A link whose client has asked, and whose broker has not answered yet.

    ``ours``: the proxy's socket to the broker.
    """

    def __init__(
        self, rig: Rig, route: Route | None = None, *, requests: int = 1, buffers: int | None = None
    ) -> None:
        self.rig = rig
        self.client, near = socket_pair(tcp=True)
        plain, self.broker = socket_pair(tcp=True, buffers=buffers)
        self.ours = _Counting(fileno=plain.detach())
        self.ours.setblocking(False)
        rig.pump.adopt(route or hinting_route(), near, self.ours, "a client")
        for number in range(requests):
            rig.send(self.client, messages.fetch_request(16, number, epoch=3))
        self.broker.setblocking(False)
        assert received(self.broker)
        self.got = bytearray()

    def send(self, data: bytes) -> None:
        """Have the broker send all of it, while the client reads."""
        left = memoryview(data)

        def all_is_sent() -> bool:
            nonlocal left
            with contextlib.suppress(BlockingIOError):
                left = left[self.broker.send(left) :]
            self.read()
            return not left

        until(all_is_sent, "the broker's bytes are taken", 10)

    def read(self) -> None:
        """Have the pump do what it can, and read what the client gets."""
        self.rig.spin()
        self.got += received(self.client)

    def until_got(self, data: bytes) -> None:
        """Read until all of it has come to the client, and nothing else."""

        def all_came() -> bool:
            self.read()
            return len(self.got) >= len(data)

        until(all_came, "the client gets all of it", 10)
        assert self.got == data

    @property
    def waits_for(self) -> int:
        """How many bytes of the broker must come to be reported."""
        return self.ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    def close(self) -> None:
        """Close the far ends."""
        self.client.close()
        self.broker.close()


@pytest.fixture(name="rig")
def _rig() -> Iterator[Rig]:
    with opened(Rig()) as rig:
        yield rig
        assert rig.complaints == []


@pytest.fixture(name="lane")
def _lane(rig: Rig) -> Iterator[_Lane]:
    lane = _Lane(rig)
    yield lane
    lane.close()


_THREE = [(0, _SIZE)] * 3


# The socket.


def _arrives(sock: socket.socket, far: socket.socket, data: bytes) -> None:
    far.setblocking(True)
    far.sendall(data)
    until(lambda: len(sock.recv(1 << 20, socket.MSG_PEEK)) >= len(data), "it is there", 10)


@_NEEDS_LINUX_6_9
def test_bytes_are_seen_and_stay_where_they_are() -> None:
    ours, far = socket_pair(tcp=True)
    look = Lookahead()
    data = bytes(range(256)) * 100
    with ours, far:
        _arrives(ours, far, data)
        for distance in (20_000, 0, 25_000, 300):
            assert look.peek(ours, Ahead(distance, 1, 50)) == data[distance : distance + 50]
            assert ours.getsockopt(socket.SOL_SOCKET, _PEEK_OFF) == -1
        assert look.peek(ours, Ahead(25_590, 1, 50)) == data[25_590:]
        assert look.peek(ours, Ahead(25_600, 1, 50)) == b""
        assert received(ours) == data
        assert look.peek(ours, Ahead(0, 1, 50)) == b""


@_NEEDS_LINUX_6_9
@pytest.mark.parametrize("ends", [socket.socket.close, reset])
def test_there_is_nothing_behind_an_end(ends: Callable[[socket.socket], None]) -> None:
    ours, far = socket_pair(tcp=True)
    with ours:
        ends(far)
        select.select([ours], [], [], 10)
        assert Lookahead().peek(ours, Ahead(10, 1, 50)) == b""


def test_a_system_that_cannot_look_says_so() -> None:
    plain, far = socket_pair(tcp=True)
    with _Counting(fileno=plain.detach()) as ours, far:
        ours.looks = False
        assert Lookahead().peek(ours, Ahead(10, 1, 50)) is None


def _is_reported(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def test_a_socket_that_waits_is_reported_once_enough_is_there() -> None:
    ours, far = socket_pair(tcp=True)
    look = Lookahead()
    with ours, far:
        assert look.wait(ours, 1000)
        _arrives(ours, far, bytes(999))
        assert not _is_reported(ours)
        look.go_on(ours)
        assert _is_reported(ours)
        assert look.wait(ours, 1000)
        assert not _is_reported(ours)
        far.sendall(b".")
        until(lambda: _is_reported(ours), "it is reported", 10)


def test_a_socket_that_waits_is_reported_when_its_peer_ends() -> None:
    ours, far = socket_pair(tcp=True)
    with ours:
        assert Lookahead().wait(ours, 1000)
        far.close()
        until(lambda: _is_reported(ours), "it is reported", 10)


def test_what_there_is_no_room_for_is_not_waited_for() -> None:
    ours, far = socket_pair(tcp=True, buffers=4096)
    with ours, far:
        assert not Lookahead().wait(ours, 1 << 20)
        _arrives(ours, far, b".")
        assert _is_reported(ours)


def test_none_waits_for_long() -> None:
    ours, far = socket_pair(tcp=True)
    closed, _ = socket_pair(tcp=True)
    look = Lookahead()
    with ours, far:
        look.wait(closed, 1000)
        closed.close()
        look.wait(ours, 1000)
        _arrives(ours, far, b".")
        at_once(look.sweep())
        assert not _is_reported(ours)
        at_once(look.sweep())
        assert _is_reported(ours)


def test_very_many_that_wait_are_let_go_some_at_a_time() -> None:
    """9,500 in one step took 21 ms."""
    look = Lookahead()
    with contextlib.ExitStack() as stack:
        pairs = [socket_pair(tcp=True) for _ in range(250)]
        for ours, far in pairs:
            stack.enter_context(ours)
            stack.enter_context(far)
            look.wait(ours, 1000)
            _arrives(ours, far, b".")
        at_once(look.sweep())
        steps = look.sweep()
        next(steps)
        assert sum(_is_reported(ours) for ours, _ in pairs) == 200
        at_once(steps)
        assert all(_is_reported(ours) for ours, _ in pairs)


# Links.


@_NEEDS_LINUX_6_9
def test_records_of_a_response_without_errors_are_never_received(rig: Rig) -> None:
    answers = [messages.large_fetch_response(number, _THREE) for number in range(4)]
    lane = _Lane(rig, requests=len(answers))
    for number, answer in enumerate(answers, 1):
        lane.send(answer)
        lane.until_got(b"".join(answers[:number]))
        assert lane.waits_for == 1
    # Of the first one a buffer full, of each the end.
    assert lane.ours.count < 1.5 * len(answers[0])
    assert rig.budget.used == 0
    lane.close()


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("failed", range(3))
async def test_a_response_with_an_error_is_held(failed: int, looks: bool) -> None:
    partitions = [(NOT_LEADER if n == failed else 0, 0 if n == failed else _SIZE) for n in range(3)]
    answer = messages.large_fetch_response(0, partitions)
    route = moving_route()
    with opened(Rig()) as rig:
        lane = _Lane(rig, route)
        lane.ours.looks = looks
        lane.send(answer)

        def held() -> bool:
            lane.read()
            return rig.hold_timer.waiting.is_set()

        until(held, "the response is held", 10)
        assert lane.got == b""
        assert lane.ours.count == len(answer)
        assert lane.waits_for == 1
        rig.hold_timer.switch(route, Mode.OFF)
        lane.until_got(answer)
        lane.close()


def test_a_system_that_cannot_look_has_all_received(rig: Rig, lane: _Lane) -> None:
    lane.ours.looks = False
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer)
    lane.until_got(answer)
    assert lane.ours.count > 2 * _SIZE


@pytest.mark.parametrize("cut", [100, _SIZE, 2 * _SIZE + 90, 3 * _SIZE])
def test_a_response_that_comes_in_two_parts_arrives_whole(rig: Rig, lane: _Lane, cut: int) -> None:
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer[:cut])
    lane.read()
    lane.send(answer[cut:])
    lane.until_got(answer)


@_NEEDS_LINUX_6_9
def test_bytes_that_come_slowly_are_received_after_a_while(rig: Rig, lane: _Lane) -> None:
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer[: _SIZE // 2])
    lane.read()
    assert lane.ours.count < _SIZE // 2
    assert lane.waits_for > _SIZE // 2
    rig.sweep(1.0)
    rig.sweep(2.0)
    lane.read()
    assert lane.ours.count == _SIZE // 2
    assert lane.waits_for == 1
    lane.send(answer[_SIZE // 2 :])
    lane.until_got(answer)


def test_a_response_that_does_not_fit_into_the_socket_is_received(rig: Rig) -> None:
    lane = _Lane(rig, buffers=65_536)
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer)
    lane.until_got(answer)
    assert lane.ours.count > _SIZE
    lane.close()


@pytest.mark.parametrize("size", [200, _SIZE, _SIZE + _SIZE // 2])
def test_what_came_before_a_broker_ends_goes_on(rig: Rig, lane: _Lane, size: int) -> None:
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer[:size])
    lane.broker.close()
    assert bytes(lane.got) + until_end(rig, lane.client) == answer[:size]


def test_a_broker_that_resets_ends_the_link(rig: Rig, lane: _Lane) -> None:
    lane.send(messages.large_fetch_response(0, _THREE)[:_SIZE])
    reset(lane.broker)
    until_end(rig, lane.client)


def test_a_client_that_vanishes_meanwhile_ends_the_link(rig: Rig, lane: _Lane) -> None:
    lane.send(messages.large_fetch_response(0, _THREE)[:_SIZE])
    reset(lane.client)
    until_end(rig, lane.broker)


def test_a_process_that_drains_waits_for_the_rest(rig: Rig, lane: _Lane) -> None:
    answer = messages.large_fetch_response(0, _THREE)
    lane.send(answer[:_SIZE])
    rig.drain(lambda _: False)
    rig.sweep(1.0)
    lane.read()
    lane.send(answer[_SIZE:])
    lane.until_got(answer)
    rig.sweep(2.0)
    rig.sweep(3.0)
    assert until_end(rig, lane.client) == b""


def test_responses_keep_their_order(rig: Rig) -> None:
    answers = [
        messages.large_fetch_response(number, _THREE if number % 2 else [(0, 10)])
        for number in range(6)
    ]
    lane = _Lane(rig, requests=6)
    lane.send(b"".join(answers))
    lane.until_got(b"".join(answers))
    lane.close()
