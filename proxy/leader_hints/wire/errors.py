"""What can be wrong with bytes.

Tested in ``tests/wire/test_reader.py``.
"""


class WireError(ValueError):
    """The bytes do not follow the protocol's encoding."""


class Truncated(WireError):
    """The value goes on beyond the bytes at hand: more may come, or the frame lies about itself."""


class Malformed(WireError):
    """No further byte can make this right."""
