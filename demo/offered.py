"""The versions that a broker itself offers, asked over its socket without any client library."""

import socket
import struct
from collections.abc import Mapping

_API_VERSIONS = 18
_DEADLINE_SECONDS = 30.0
_NAMES: Mapping[int, str] = {0: "Produce", 1: "Fetch"}


def offered_versions(address: tuple[str, int]) -> dict[str, int]:
    """The highest Produce and Fetch versions of the broker at `address`, by name.

    :raises OSError: it does not answer.
    :raises ValueError: it answers with an error.
    """
    request = struct.pack(">hhih", _API_VERSIONS, 0, 0, -1)
    with socket.create_connection(address, _DEADLINE_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            body = answer.read(size)
    # Correlation id, error, then an array of (key, lowest, highest).
    _, error, count = struct.unpack_from(">ihi", body)
    if error:
        raise ValueError(f"the broker answered ApiVersions with error {error}")
    ranges = (struct.unpack_from(">hhh", body, 10 + 6 * entry) for entry in range(count))
    return {_NAMES[key]: highest for key, _, highest in ranges if key in _NAMES}
