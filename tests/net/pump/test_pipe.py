"""Bytes that the system moves between two sockets."""

import errno
import fcntl
import os
from collections.abc import Iterator

import pytest

from leader_hints.net.pump.pipe import Pipe, Pipes, UnfitError
from tests.net.rig import descriptors_before, open_descriptors, received, socket_pair

_MOST = 1 << 20


@pytest.fixture(name="pipes")
def _pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


def _taken(pipes: Pipes) -> Pipe:
    pipe = pipes.take()
    assert pipe is not None
    return pipe


def test_bytes_stay_in_it_until_they_are_taken() -> None:
    data = os.urandom(300_000)
    source, far = socket_pair(tcp=True)
    target, hearer = socket_pair(buffers=4096)
    pipe = Pipe()
    came, got = 0, bytearray()
    with source, far, target, hearer:
        left = memoryview(data)
        while came < len(data):
            try:
                left = left[far.send(left) :] if left else left
                came += pipe.fill(source.fileno(), len(data) - came)
            except BlockingIOError:
                continue
        assert len(pipe) == len(data)
        with pytest.raises(BlockingIOError):
            pipe.fill(source.fileno(), 1)
        while pipe:
            try:
                pipe.empty(target.fileno())
            except BlockingIOError:
                got += received(hearer)
        got += received(hearer)
        assert got == data
        far.close()
        assert pipe.fill(source.fileno(), 1) == 0
    pipe.close()


def test_no_more_come_than_are_asked_for() -> None:
    source, far = socket_pair()
    with source, far:
        far.sendall(b"abcdef")
        pipe = Pipe()
        assert pipe.fill(source.fileno(), 4) == 4
        assert source.recv(10) == b"ef"
        pipe.close()


def test_what_cannot_be_moved_is_reported() -> None:
    counter = os.eventfd(1)
    pipe = Pipe()
    with pytest.raises(UnfitError):
        pipe.fill(counter, 8)
    pipe.close()
    os.close(counter)


def test_they_are_lent_up_to_a_number_and_again_when_they_come_back(pipes: Pipes) -> None:
    before = descriptors_before()
    lent = []
    while (pipe := pipes.take()) is not None:
        lent.append(pipe)
    assert len(lent) == 16
    pipes.give_back(lent.pop())
    again = _taken(pipes)
    assert pipes.take() is None
    # One that is not empty is no good to the next one.
    source, far = socket_pair()
    with source, far:
        far.sendall(b"x")
        again.fill(source.fileno(), 1)
    pipes.give_back(again)
    fresh = _taken(pipes)
    assert fresh is not again
    assert not fresh
    for pipe in (fresh, *lent):
        pipes.give_back(pipe)
    pipes.close()
    assert open_descriptors() == before


def test_those_that_nobody_needs_are_closed_at_the_second_sweep(pipes: Pipes) -> None:
    before = descriptors_before()
    first, second = _taken(pipes), _taken(pipes)
    pipes.give_back(first)
    pipes.give_back(second)
    pipes.sweep()
    # One is needed between two sweeps, and kept.
    pipes.give_back(_taken(pipes))
    pipes.sweep()
    assert open_descriptors() == before + 2
    lent = _taken(pipes)
    pipes.sweep()
    pipes.sweep()
    assert open_descriptors() == before + 2
    pipes.give_back(lent)
    pipes.sweep()
    pipes.sweep()
    assert open_descriptors() == before


def test_without_splice_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "splice")
    assert Pipes().take() is None


def test_where_the_system_gives_no_large_ones_there_are_none_and_nobody_asks_again(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = _taken(pipes)
    before, asked = descriptors_before(), []

    def refuse(*what: int) -> int:
        asked.append(what)
        raise OSError(errno.EPERM, "too many")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    assert [pipes.take(), pipes.take()] == [None, None]
    assert len(asked) == 1
    assert open_descriptors() == before
    pipes.give_back(one)
    assert _taken(pipes) is one
    pipes.give_back(one)


def test_after_a_shortage_that_is_over_pipes_are_lent_again(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that came while none was lent had all bytes copied until the process was restarted."""

    def refuse(flags: int) -> tuple[int, int]:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as short:
        short.setattr(os, "pipe2", refuse)
        assert pipes.take() is None
    assert pipes.take() is None
    pipes.sweep()
    pipes.give_back(_taken(pipes))


def test_once_stopped_none_is_lent(pipes: Pipes) -> None:
    pipes.give_back(_taken(pipes))
    lent = _taken(pipes)
    pipes.stop()
    pipes.give_back(lent)
    assert pipes.take() is None
    pipes.sweep()
    assert pipes.take() is None
