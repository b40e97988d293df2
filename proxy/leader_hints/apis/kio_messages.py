"""Whole messages by kio, for what is only there to test clients. All else reads bytes."""

import importlib
import struct
from io import BytesIO
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from leader_hints.apis.header import FLEXIBLE_FROM, read_request_header
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.kio_counts import check_counts
from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.writer import frame

#: One of kio's classes, which are frozen dataclasses made from Kafka's message definitions. Which
#: one it is follows from key and version, at run time.
Message = Any

_CORRELATION = struct.Struct(">i")


def read_request(request: memoryview) -> Message:
    """Read a whole request, which begins with its size prefix.

    :raises WireError: it is not well formed, or of a version that kio does not know.
    """
    header = read_request_header(request)
    try:
        kind = load_request_schema(header.key, header.version)
        check_counts(kind, request[header.body :])
        message, _ = entity_reader(kind)(bytes(request[header.body :]), 0)
    except Exception as error:
        # kio has no class of errors of its own for bytes that are no message.
        raise Malformed(f"request {header.key} v{header.version}: {error}") from None
    return message


def read_response(key: int, version: int, response: memoryview) -> Message:
    """Read a whole response, which begins with its size prefix.

    :raises WireError: as :func:`read_request`.
    """
    try:
        kind = load_response_schema(key, version)
        _, size = entity_reader(kind.__header_schema__)(bytes(response[4:]), 0)
        check_counts(kind, response[4 + size :])
        message, _ = entity_reader(kind)(bytes(response[4:]), size)
    except Exception as error:
        raise Malformed(f"response {key} v{version}: {error}") from None
    return message


def write_response(correlation_id: int, message: Message) -> bytes:
    """Return a whole response frame.

    :raises WireError: as :func:`write_body`.
    """
    out = BytesIO()
    out.write(_CORRELATION.pack(correlation_id))
    key, version = type(message).__api_key__, type(message).__version__
    if key != ApiKey.API_VERSIONS and version >= FLEXIBLE_FROM[key]:
        out.write(b"\0")
    out.write(write_body(message))
    return frame(out.getvalue())


def write_body(message: Message) -> bytes:
    """Return a message without its header.

    :raises WireError: something in it has no place in its version.
    """
    out = BytesIO()
    try:
        entity_writer(type(message))(out, message)
    except Exception as error:
        kind = type(message)
        raise Malformed(f"writing {kind.__api_key__} v{kind.__version__}: {error}") from None
    return out.getvalue()


def read_body(key: int, version: int, reader: Reader) -> Message:
    """Read a response whose header was read.

    :raises WireError: as :func:`read_request`.
    """
    try:
        kind = load_response_schema(key, version)
        body = reader.take(reader.end - reader.at)
        check_counts(kind, memoryview(body))
        message, _ = entity_reader(kind)(body, 0)
    except Exception as error:
        raise Malformed(f"response {key} v{version}: {error}") from None
    return message


def parts(key: int, version: int) -> Any:
    """Return the module that has the classes of a response's parts, by their names."""
    return importlib.import_module(load_response_schema(key, version).__module__)
