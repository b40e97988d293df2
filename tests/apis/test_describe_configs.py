"""DescribeConfigs v1 against kio."""

import datetime
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.describe_configs.v1.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v1.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32Timedelta

from leader_hints.apis.describe_configs import read_values, write_request_body
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader

_VALUES = st.dictionaries(st.text(max_size=20), st.none() | st.text(max_size=20), max_size=5)


def _response(values: dict[str, str | None]) -> bytes:
    synonym = DescribeConfigsSynonym(name="a", value=None, source=i8(1))
    told = DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=i8(4),
        resource_name="1",
        configs=tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=True,
                is_sensitive=value is None,
                synonyms=(synonym,) * (len(name) % 2),
            )
            for name, value in values.items()
        ),
    )
    buffer = io.BytesIO()
    time = i32Timedelta.parse(datetime.timedelta(milliseconds=3))
    response = DescribeConfigsResponse(throttle_time=time, results=(told,))
    entity_writer(DescribeConfigsResponse)(buffer, response)
    return buffer.getvalue()


def test_the_request_is_as_kio_reads_it() -> None:
    body = write_request_body(7, ["a.b", "c"])

    request, size = entity_reader(DescribeConfigsRequest)(body, 0)

    resource = DescribeConfigsResource(
        resource_type=i8(4), resource_name="7", configuration_keys=("a.b", "c")
    )
    assert size == len(body)
    assert request == DescribeConfigsRequest(resources=(resource,), include_synonyms=False)


@given(values=_VALUES)
def test_values_that_are_reported_are_read(values: dict[str, str | None]) -> None:
    reader = Reader(_response(values))

    assert read_values(reader) == {n: value for n, value in values.items() if value is not None}
    reader.done()


@given(values=_VALUES, data=st.data())
def test_a_cut_answer_is_refused(values: dict[str, str | None], data: st.DataObject) -> None:
    whole = _response(values)
    size = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(WireError):
        read_values(Reader(whole[:size]))
