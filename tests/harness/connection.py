"""A plain connection to a broker: whole messages asked and answered, one at a time."""

import io
import itertools
import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import RequestPayload, ResponsePayload

Address = tuple[str, int]
R = TypeVar("R", bound=ResponsePayload)

CLIENT_ID = "harness"


def joined(address: Address) -> str:
    """An address as settings have it, such as ``[::1]:9092``."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_exactly(stream: socket.socket, count: int) -> bytes:
    """Read ``count`` bytes.

    :raises ConnectionError: the other side closed before.
    """
    received = bytearray()
    while len(received) < count:
        chunk = stream.recv(count - len(received))
        if not chunk:
            raise ConnectionError(f"closed after {len(received)} of {count} bytes")
        received += chunk
    return bytes(received)


def encode_request(request: RequestPayload, correlation_id: int, client_id: str) -> bytes:
    """A request's frame without its length prefix."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=i16(request.__version__),
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    frame = io.BytesIO()
    entity_writer(type(header))(frame, header)
    entity_writer(type(request))(frame, request)
    return frame.getvalue()


def decode_response(frame: bytes, response_type: type[R]) -> R:
    """The response in a frame (without its length prefix), read as ``response_type``."""
    _, size = entity_reader(response_type.__header_schema__)(frame, 0)
    response, _ = entity_reader(response_type)(frame, size)
    return response


class BrokerConnection:
    """A connection of the tests' own, which no client library hides anything on."""

    def __init__(
        self, address: Address, client_id: str = CLIENT_ID, timeout_s: float = 30.0
    ) -> None:
        """Connect.

        :raises OSError: nobody listens at ``address``.
        """
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self.socket = socket.create_connection(address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame behind its length prefix."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def read_frame(self) -> bytes:
        """Read a frame and take off its length prefix."""
        (length,) = struct.unpack(">i", read_exactly(self.socket, 4))
        return read_exactly(self.socket, length)

    def ask(self, request: RequestPayload, response_type: type[R]) -> R:
        """Send a request and wait for its response.

        :raises ConnectionError: the broker closed the connection.
        :raises TimeoutError: no answer in time.
        """
        self.send_frame(encode_request(request, next(self._correlation_ids), self._client_id))
        return decode_response(self.read_frame(), response_type)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
