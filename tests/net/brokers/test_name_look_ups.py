"""Names that name servers do not answer for: what else needs a thread goes on."""

import gc
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.brokers import name_look_ups
from leader_hints.net.brokers.broker_stream import open_broker_stream
from tests.net.serving import Rounds, until_true

_SECONDS = 10.0


class _Names:
    """A resolver that hangs, but for names that begin with "here"; ``asked``: look-ups begun."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answered = threading.Event()

    def getaddrinfo(self, host: Any, port: Any, *others: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        if name[0].isdigit():
            return _REAL(host, port, *others)
        self.asked.append(name)
        if name.startswith("here"):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        self.answered.wait(_SECONDS)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


_REAL = socket.getaddrinfo


@pytest.fixture(name="names")
def _names(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Names]:
    names = _Names()

    def getaddrinfo(host: Any, port: Any, *others: Any) -> list[Any]:
        if others and others[-1] & socket.AI_NUMERICHOST:
            return _REAL(host, port, *others)
        return names.getaddrinfo(host, port, *others)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield names
    names.answered.set()


async def _fails(name: str, errors: list[str]) -> None:
    with pytest.raises(BrokerError) as raised:
        await open_broker_stream(Address(name, 9092), _SECONDS)
    errors.append(str(raised.value))


async def test_names_that_hang_keep_no_thread_from_anything_else(names: _Names) -> None:
    name_look_ups.install()
    errors: list[str] = []
    everywhere = int(trio.to_thread.current_default_thread_limiter().total_tokens)
    async with trio.open_nursery() as nursery:
        for number in range(2 * everywhere):
            nursery.start_soon(_fails, f"hangs-{number}", errors)
        while len(names.asked) < name_look_ups._THREADS:
            await trio.lowlevel.checkpoint()
        with trio.fail_after(_SECONDS):
            assert await trio.to_thread.run_sync(lambda: "done") == "done"
        assert len(names.asked) == name_look_ups._THREADS
        names.answered.set()
    assert set(errors) == {"cannot connect: temporary failure in name resolution"}


async def test_one_name_that_hangs_has_one_thread_whatever_becomes_of_its_attempts(
    names: _Names,
) -> None:
    name_look_ups.install()
    for _ in range(2 * name_look_ups._THREADS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_broker_stream, Address("hangs", 9092), _SECONDS)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    # Other names have threads all the while.
    with trio.fail_after(_SECONDS):
        found = await trio.socket.getaddrinfo("here", 9092)
    assert found[0][4] == ("127.0.0.1", 9092)
    # The threads may have begun in another order than that in which they were started.
    assert sorted(names.asked) == ["hangs", "here"]


async def test_attempts_at_the_same_time_share_a_look_up_and_later_ones_begin_another(
    names: _Names,
) -> None:
    name_look_ups.install()
    found: list[Any] = []

    async def look_up() -> None:
        found.append(await trio.socket.getaddrinfo("here", 9092))

    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(look_up)
    assert len(found) == 10
    assert names.asked == ["here", "here"]


async def test_those_that_waited_for_a_name_go_on_in_many_rounds(names: _Names) -> None:
    """Thousands of clients may wait for the name of one broker while a name server does not answer.
    Of 3,000, all went on in one round of the event loop, of 0.14 s of CPU, and in another one of
    0.2 s as they were connected."""
    name_look_ups.install()
    rounds, went_on = Rounds(), Counter[int]()
    most = name_look_ups._AT_ONCE

    async def look_up() -> None:
        with pytest.raises(socket.gaierror):
            await trio.socket.getaddrinfo("hangs", 9092)
        went_on[rounds.now] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(10 * most):
            nursery.start_soon(look_up)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(rounds.count)
        names.answered.set()
        with trio.fail_after(_SECONDS):
            while went_on.total() < 10 * most:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    # The counter may have its turn before or after the others in the same round.
    assert max(went_on.values()) <= 2 * most
    assert names.asked == ["hangs"]


async def test_those_that_waited_for_a_name_in_vain_leave_no_garbage_in_circles(
    names: _Names,
) -> None:
    """One error kept the frames of all: to collect those of 9,000 clients took 0.2 s at once."""
    name_look_ups.install()
    many, errors = 100, list[str]()
    gc.collect()
    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            for _ in range(many):
                nursery.start_soon(_fails_once, "hangs", errors)
            await trio.testing.wait_all_tasks_blocked()
            names.answered.set()
        assert errors == ["cannot connect: temporary failure in name resolution"] * many
        # The thread of the look-up has the error for a moment longer.
        await until_true(
            lambda: not any(isinstance(one, socket.gaierror) for one in gc.get_objects())
        )
    finally:
        gc.enable()


async def _fails_once(name: str, errors: list[str]) -> None:
    # What pytest raises keeps the error.
    try:
        await open_broker_stream(Address(name, 9092), _SECONDS)
    except BrokerError as error:
        errors.append(str(error))


async def test_who_waits_no_longer_for_a_name_keeps_nobody_else_from_going_on(
    names: _Names,
) -> None:
    name_look_ups.install()
    errors: list[str] = []
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as impatient:
            for number in range(4 * name_look_ups._AT_ONCE):
                of = impatient if number % 2 else nursery
                of.start_soon(_fails, "hangs", errors)
            await trio.testing.wait_all_tasks_blocked()
            impatient.cancel_scope.cancel()
        names.answered.set()
    assert len(errors) == 2 * name_look_ups._AT_ONCE


async def test_beyond_the_bound_a_look_up_is_refused_and_the_error_says_so(
    names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_look_ups, "_MOST", 3)
    name_look_ups.install()
    errors: list[str] = []
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(_fails, f"hangs-{number}", [])
        await trio.testing.wait_all_tasks_blocked()
        await _fails("one-more", errors)
        names.answered.set()
    assert errors == ["cannot connect: 3 names are being looked up already"]
    assert "one-more" not in names.asked


async def test_a_name_that_was_found_does_not_wait_for_names_that_hang(
    names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it refused for them: clients of a broker that was well were reset."""
    monkeypatch.setattr(name_look_ups, "_MOST", 2 * name_look_ups._THREADS)
    name_look_ups.install()
    await trio.socket.getaddrinfo("here", 9092)
    async with trio.open_nursery() as nursery:
        for number in range(2 * name_look_ups._THREADS):
            nursery.start_soon(_fails, f"hangs-{number}", [])
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(_SECONDS / 2):
            assert await trio.socket.getaddrinfo("here", 9092)
        names.answered.set()


async def test_names_that_are_remembered_as_found_are_bounded(
    names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_look_ups, "_FOUND", 2)
    look_ups = name_look_ups.NameLookUps()
    for name in (b"here-1", b"here-2", b"here-3"):
        await look_ups.getaddrinfo(name, 9092)
    assert [host for host, *_ in look_ups._found] == [b"here-2", b"here-3"]


async def test_a_look_up_that_never_ends_is_given_up_and_the_next_attempt_begins_another(
    names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a module of nsswitch: no client got that name before the process was restarted."""
    monkeypatch.setattr(name_look_ups, "_PATIENCE", 0.05)
    monkeypatch.setattr(name_look_ups, "_THREADS", 1)
    name_look_ups.install()
    errors: list[str] = []
    await _fails("hangs", errors)
    assert errors == ["cannot connect: no answer within 0.05 s"]
    # It leaves its place to others, and to attempts for the same name.
    assert await trio.socket.getaddrinfo("here", 9092)
    names.answered.set()
    await _fails("hangs", errors)
    assert errors[1:] == ["cannot connect: temporary failure in name resolution"]
    assert names.asked == ["hangs", "here", "hangs"]


async def test_the_more_look_ups_hang_the_longer_others_are_waited_for(
    names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once 32 hung, the next ones were waited for for good: no name was looked up any more."""
    monkeypatch.setattr(name_look_ups, "_PATIENCE", 0.05)
    monkeypatch.setattr(name_look_ups, "_HUNG", 2)
    monkeypatch.setattr(name_look_ups, "_THREADS", 1)
    look_ups = name_look_ups.NameLookUps()
    for number, seconds in enumerate(("0.05", "0.05", "0.1", "0.1", "0.2")):
        with pytest.raises(socket.gaierror, match=f"no answer within {seconds} s"):
            await look_ups.getaddrinfo(f"hangs-{number}".encode(), 9092)
    assert await look_ups.getaddrinfo(b"here", 9092)
    names.answered.set()
    # Those of which the threads have ended count no longer.
    await until_true(lambda: not look_ups._hung)
    with pytest.raises(socket.gaierror, match="name resolution"):
        await look_ups.getaddrinfo(b"hangs-3", 9092)
