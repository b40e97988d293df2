"""A connection to a broker that answers in pieces, wrongly, too much, too late or not at all."""

import contextlib
import struct
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from leader_hints.apis.keys import ApiKey
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.wire.errors import WireError
from tests.net import messages

_PATIENCE = 2.0

Broker = Callable[[trio.abc.Stream], Awaitable[object]]


async def _asked(broker: Broker, key: ApiKey = ApiKey.METADATA, version: int = 12) -> bytes:
    """What a connection takes for the body of the answer that ``broker`` gives."""
    ours, theirs = memory_stream_pair()
    connection = BrokerConnection(ours, "leader-hints", _PATIENCE)
    answer: bytes | BrokerError
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker, theirs)
        try:
            reader = await connection.ask(key, version, b"the body")
            answer = bytes(reader.buffer[reader.at :])
        except BrokerError as error:
            answer = error
        await connection.aclose()
        nursery.cancel_scope.cancel()
    if isinstance(answer, BrokerError):
        raise answer  # Out here, where no group hides it.
    return answer


def _answer(body: bytes = b"the answer", correlation: int = 1) -> bytes:
    return messages.response(messages.METADATA, 12, correlation, body)


def _says(*chunks: bytes, then_close: bool = False) -> Broker:
    async def broker(stream: trio.abc.Stream) -> None:
        await stream.receive_some()
        for chunk in chunks:
            await stream.send_all(chunk)
            await trio.testing.wait_all_tasks_blocked()
        if then_close:
            await stream.aclose()

    return broker


async def test_the_request_is_whole_and_well_formed() -> None:
    heard = bytearray()

    async def broker(stream: trio.abc.Stream) -> None:
        heard.extend(await stream.receive_some())
        await stream.send_all(_answer())

    assert await _asked(broker) == b"the answer"
    head = struct.pack(">hhi", 3, 12, 1) + messages.old_text("leader-hints") + b"\0"
    assert heard == messages.framed(head + b"the body")


async def test_an_answer_cut_in_two_at_every_byte_is_read_whole() -> None:
    whole = _answer()
    for cut in range(1, len(whole)):
        assert await _asked(_says(whole[:cut], whole[cut:])) == b"the answer"


async def test_an_answer_that_comes_byte_by_byte_is_read_whole() -> None:
    whole = _answer()
    assert await _asked(_says(*[whole[n : n + 1] for n in range(len(whole))])) == b"the answer"


async def test_answers_that_come_together_are_distinguished() -> None:
    ours, theirs = memory_stream_pair()
    connection = BrokerConnection(ours, "c", _PATIENCE)
    await theirs.send_all(_answer(b"first", 1) + _answer(b"second", 2))
    for expected in (b"first", b"second"):
        reader = await connection.ask(ApiKey.METADATA, 12, b"")
        assert bytes(reader.buffer[reader.at :]) == expected


async def test_a_large_answer_is_in_memory_once() -> None:
    """To copy one of 8.4 MB twice, as of 200,000 partitions, took 10 ms of CPU of one step, and
    three times the memory, of one that may have 128 MB."""
    ours, theirs = memory_stream_pair()
    connection, chunk, size = BrokerConnection(ours, "c", _PATIENCE), bytes(65_536), 1 << 23
    with contextlib.suppress(trio.TooSlowError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.ask, ApiKey.METADATA, 12, b"")
            await theirs.send_all(struct.pack(">ii", size, 1))
            tracemalloc.start()
            try:
                for _ in range(size // len(chunk)):
                    await theirs.send_all(chunk)
                    await trio.testing.wait_all_tasks_blocked()
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert most < 1.5 * size


@pytest.mark.parametrize(
    ("broker", "reason"),
    [
        (_says(_answer(correlation=2)), "answer to another request"),
        (_says(struct.pack(">i", (1 << 27) + 1)), "answer of 134217729 bytes"),
        (_says(struct.pack(">i", -1)), "answer of -1 bytes"),
        (_says(struct.pack(">i", 3) + b"abc"), "answer of 3 bytes"),
        (_says(then_close=True), "connection closed by the broker"),
        (_says(_answer()[:9], then_close=True), "connection closed by the broker"),
    ],
)
async def test_what_is_no_answer_is_the_brokers_fault(broker: Broker, reason: str) -> None:
    with pytest.raises(BrokerError) as caught:
        await _asked(broker)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("key", "version", "most"),
    [
        (ApiKey.API_VERSIONS, 0, 1 << 20),
        (ApiKey.SASL_HANDSHAKE, 1, 1 << 20),
        (ApiKey.SASL_AUTHENTICATE, 1, 1 << 20),
        (ApiKey.LIST_OFFSETS, 4, 1 << 23),
    ],
)
async def test_an_answer_that_is_read_at_once_must_be_small(
    key: ApiKey, version: int, most: int
) -> None:
    """To read 128 MB of versions would stop all links for tens of seconds."""
    with pytest.raises(BrokerError, match=f"answer of {most + 1} bytes"):
        await _asked(_says(struct.pack(">i", most + 1)), key, version)


async def test_a_header_that_breaks_off_is_a_wire_error() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(messages.framed(struct.pack(">i", 1)))
    with pytest.raises(WireError):
        await BrokerConnection(ours, "c", _PATIENCE).ask(ApiKey.METADATA, 12, b"")


async def test_a_broker_that_closed_before_is_the_brokers_fault() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.aclose()
    with pytest.raises(BrokerError, match=r"^connection broken: "):
        await BrokerConnection(ours, "c", _PATIENCE).ask(ApiKey.METADATA, 12, b"")


async def test_a_connection_that_is_reset_is_the_brokers_fault() -> None:
    async with trio.open_nursery() as nursery:

        async def reset(stream: trio.SocketStream) -> None:
            await stream.receive_some()
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, _NO_LINGER)
            await stream.aclose()

        listeners = await nursery.start(trio.serve_tcp, reset, 0)
        ours = await trio.testing.open_stream_to_socket_listener(listeners[0])
        with pytest.raises(BrokerError) as caught:
            await BrokerConnection(ours, "c", 10).ask(ApiKey.METADATA, 12, b"")
        assert "reset" in str(caught.value)
        await ours.aclose()
        nursery.cancel_scope.cancel()


_NO_LINGER = struct.pack("ii", 1, 0)


async def test_it_waits_for_what_happens_elsewhere() -> None:
    ours, theirs = memory_stream_pair()
    connection = BrokerConnection(ours, "c", _PATIENCE)
    event = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.wait, event)
        await trio.testing.wait_all_tasks_blocked()
        event.set()
    await theirs.send_all(_answer())
    reader = await connection.ask(ApiKey.METADATA, 12, b"")
    assert bytes(reader.buffer[reader.at :]) == b"the answer"


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "connection closed by the broker"), (b"unasked", "answer to no request")],
)
async def test_it_notices_while_it_waits(data: bytes, reason: str) -> None:
    ours, theirs = memory_stream_pair()
    if data:
        await theirs.send_all(data)
    else:
        await theirs.aclose()
    with trio.fail_after(5), pytest.raises(BrokerError) as caught:
        await BrokerConnection(ours, "c", _PATIENCE).wait(trio.Event())
    assert str(caught.value) == reason


async def test_an_answer_must_have_come_in_time(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    with pytest.raises(BrokerError, match=r"^no answer within 2 s$"):
        await _asked(_says(_answer()[:-1]))
    assert trio.current_time() - begin == _PATIENCE


async def test_a_trickle_does_not_lengthen_the_time(autojump_clock: MockClock) -> None:
    async def broker(stream: trio.abc.Stream) -> None:
        with contextlib.suppress(trio.BrokenResourceError):
            for byte in _answer():
                await stream.send_all(bytes([byte]))
                await trio.sleep(1)

    begin = trio.current_time()
    with pytest.raises(BrokerError, match="no answer"):
        await _asked(broker)
    assert trio.current_time() - begin == _PATIENCE


async def test_a_request_must_have_been_taken_in_time(autojump_clock: MockClock) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    with pytest.raises(BrokerError, match=r"^no answer within 2 s$"):
        await BrokerConnection(ours, "c", _PATIENCE).ask(ApiKey.METADATA, 12, b"")
    await theirs.aclose()
