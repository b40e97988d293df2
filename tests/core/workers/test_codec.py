from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core import events
from leader_hints.core.events import Event
from leader_hints.core.workers import messages
from leader_hints.core.workers.codec import MESSAGES, NotAMessageError, decode, encode
from leader_hints.core.workers.messages import Happened, Message, TopicsAdded

st.register_type_strategy(float, st.floats(allow_nan=False))

_MESSAGES = st.one_of([st.builds(kind) for kind in get_args(Message) if kind is not Happened])


@given(_MESSAGES)
def test_a_message_comes_out_as_it_went_in(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@given(st.data())
def test_each_event_comes_out_as_it_went_in(kind: type[Any], data: st.DataObject) -> None:
    message = Happened(data.draw(st.builds(kind)))
    assert decode(encode(message)) == message


def _classes(module: Any) -> set[type[Any]]:
    return {
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }


def test_no_message_and_no_event_is_forgotten() -> None:
    parts = {messages.Failing, messages.LeaderMove, messages.CellCount}
    assert _classes(messages) - parts == set(MESSAGES.values())
    assert _classes(events) - {events.ErrorAnswered} == set(get_args(Event))


@given(st.binary())
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(NotAMessageError):
        decode(data)


@given(_MESSAGES, st.data())
def test_a_message_that_is_cut_or_changed_is_read_or_refused(
    message: Message, data: st.DataObject
) -> None:
    whole = bytearray(encode(message))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at : at + data.draw(st.integers(1, 4))] = data.draw(st.binary(max_size=4))
    try:
        read = decode(bytes(whole))
    except NotAMessageError:
        return
    assert decode(encode(read)) == read


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b'["Begin"]',
        b'["Nothing", 1]',
        b'["Begin", true, 2, "x"]',
        b'["LinkEnded", "1"]',
        b'["TopicsAdded", "c", [["t", "not base64"]]]',
        b"[" * 100_000,
    ],
)
def test_a_field_of_another_type_is_refused(text: bytes) -> None:
    with pytest.raises(NotAMessageError):
        decode(text)


def test_an_id_is_no_name() -> None:
    message = TopicsAdded("c", (("a name", bytes(range(16))), ("without an id", b"")))
    assert decode(encode(message)) == message
