"""Limits: what one client, one link or the process may use."""

from typing import Final, Self

from pydantic import model_validator

from leader_hints.settings.fields import Group, seconds, seconds_or_never, whole

_MAX_FRAME_BYTES: Final = 2**31 - 1  # a frame's size is a signed 32-bit number
_DEFAULT_BROKER_REQUEST_BYTES: Final = 104857600  # a broker's default socket.request.max.bytes


class LimitSettings(Group):
    """What one client, one link or the process may take up."""

    request_bytes: int = whole(
        1073741824,
        _DEFAULT_BROKER_REQUEST_BYTES,
        _MAX_FRAME_BYTES,
        "Largest request that is relayed. Requests are streamed, so this costs no memory: it is a "
        "guard against garbage, such as the text of an HTTP request read as a size. Never set it "
        "below the brokers' socket.request.max.bytes.",
    )
    link_buffer_bytes: int = whole(
        4194304,
        65536,
        1073741824,
        "Most of one Fetch response that a link keeps while it looks for errors. A larger response "
        "is forwarded without a hint, and counted.",
    )
    process_buffer_bytes: int = whole(
        67108864,
        65536,
        68719476736,
        "Most that all links together keep, of held responses also what is known of their failed "
        "partitions. At least link_buffer_bytes. Besides that, up to a quarter of it is kept for a "
        "second or two after large frames, for the next ones.",
    )
    requests_in_flight: int = whole(
        10000,
        1,
        1000000,
        "Requests on one link that await their response. At the limit the link reads no further "
        "request until a response arrives.",
    )

    connections: int = whole(
        30000,
        1,
        1000000,
        "Client connections at once, of all routes. Each takes two file descriptors; where the "
        "system allows fewer, as many as it allows.",
    )
    connections_per_route: int = whole(
        15000,
        1,
        1000000,
        "Client connections at once of one route. A client often has two or three to a broker.",
    )
    first_bytes_ms: int = whole(
        30000,
        0,
        3600000,
        "How long a new connection may send nothing before it is closed. 0: for ever.",
    )
    idle_ms: int = whole(
        0,
        0,
        86400000,
        "How long a connection may have no byte in either direction before it is closed. 0: for "
        "ever; brokers close idle connections themselves (connections.max.idle.ms).",
    )
    linger_ms: int = whole(
        30000,
        1000,
        3600000,
        "Once the client or the broker has closed: how long no byte may move before the other "
        "side is closed too, such as a client that does not read its last answers.",
    )
    held_responses: int = whole(
        10000,
        1,
        1000000,
        "Error responses held at once, of all links. Further ones are forwarded without a hint.",
    )
    queued_bytes: int = whole(
        268435456,
        1048576,
        68719476736,
        "What may wait in memory for clients and brokers that read slowly, of all links, before "
        "links receive only 4 KiB at a time. Until then each receives up to 256 KiB.",
    )

    @model_validator(mode="after")
    def _check_buffers(self) -> Self:
        if self.process_buffer_bytes < self.link_buffer_bytes:
            raise ValueError(
                f"process_buffer_bytes {self.process_buffer_bytes} must be at least "
                f"link_buffer_bytes {self.link_buffer_bytes}"
            )
        return self

    @property
    def first_bytes(self) -> float:
        """``first_bytes_ms`` in seconds; infinite for 0."""
        return seconds_or_never(self.first_bytes_ms)

    @property
    def idle(self) -> float:
        """``idle_ms`` in seconds; infinite for 0."""
        return seconds_or_never(self.idle_ms)

    @property
    def linger(self) -> float:
        """``linger_ms`` in seconds."""
        return seconds(self.linger_ms)
