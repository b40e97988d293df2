"""DescribeConfigs: asked by `leader-hints check` only, for a broker's limits.

Request v1: resources, each with the names of settings; whether synonyms are wanted. A broker tells
its settings only when it is asked itself, by its node id. v1 is taken by every broker from 0.11 on
and is not flexible.
Response v1: for each resource an error, and for each setting its value as text, null where secret.
"""

import struct
from collections.abc import Sequence

from leader_hints.wire.reader import Reader
from leader_hints.wire.writer import string

VERSION = 1
_BROKER = 4
_COUNT = struct.Struct(">i")
#: Error, error message, type, name, settings.
_SMALLEST_RESULT = 11
#: Name, value, whether it can be changed, where it comes from, whether it is secret, synonyms.
_SMALLEST_SETTING = 11


def write_request_body(node: int, settings: Sequence[str]) -> bytes:
    """Return the body of a request for settings of the broker that is asked, which is ``node``."""
    out = _COUNT.pack(1) + struct.pack(">b", _BROKER) + string(str(node))
    return out + _COUNT.pack(len(settings)) + b"".join(map(string, settings)) + b"\0"


def read_values(reader: Reader) -> dict[str, str]:
    """Return the values in a response; none where ACLs forbid them.

    :raises WireError: the response is not well formed.
    """
    reader.int32()
    values = {}
    for _ in range(reader.array(_SMALLEST_RESULT)):
        reader.int16()
        reader.string()
        reader.int8()
        reader.string()
        for _ in range(reader.array(_SMALLEST_SETTING)):
            name, value = reader.string(), reader.string()
            reader.skip(3)
            for _ in range(reader.array(5)):
                reader.string()
                reader.string()
                reader.int8()
            if name is not None and value is not None:
                values[name] = value
    return values
