"""SaslHandshake v1 against kio."""

import io

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer

from leader_hints.apis.sasl_handshake import Offered, read_response, write_request_body
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader


def test_the_request_is_as_kio_reads_it() -> None:
    body = write_request_body("PLAIN")

    request, size = entity_reader(SaslHandshakeRequest)(body, 0)

    assert (request, size) == (SaslHandshakeRequest(mechanism="PLAIN"), len(body))


@pytest.mark.parametrize("error", [ErrorCode.none, ErrorCode.unsupported_sasl_mechanism])
@pytest.mark.parametrize("mechanisms", [(), ("PLAIN",), ("SCRAM-SHA-256", "GSSAPI")])
def test_error_and_mechanisms_are_read(error: ErrorCode, mechanisms: tuple[str, ...]) -> None:
    buffer = io.BytesIO()
    response = SaslHandshakeResponse(error_code=error, mechanisms=mechanisms)
    entity_writer(SaslHandshakeResponse)(buffer, response)

    assert read_response(Reader(buffer.getvalue())) == Offered(error.value, mechanisms)


def test_a_cut_answer_is_refused() -> None:
    with pytest.raises(Truncated):
        read_response(Reader(b"\0\0\0\0\0\1\0\5PLA"))


def test_very_many_mechanisms_are_refused() -> None:
    """Those of one answer of 1 MB took 0.26 s of one step."""
    with pytest.raises(Malformed):
        read_response(Reader(b"\0\0\0\0\0\x65" + 0x65 * b"\0\0"))
