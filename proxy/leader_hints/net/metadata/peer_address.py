"""Whether a broker's name leads to another IP address by now.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

import math

#: Seconds in which clients must have reached another address, and not that of the connection: a
#: name may have several.
_MOVED_SECONDS = 60.0


class PeerAddress:
    """The IP address of the proxy's own connection to a broker, beside those that clients reach.

    The connection lasts for as long as the broker runs that had the address when it was made.
    """

    __slots__ = ("_address", "_met_at")

    def __init__(self) -> None:
        self._address = ""
        self._met_at = math.inf

    def connected(self, address: str, now: float) -> None:
        """Take note of a new connection; "" where its address is not known."""
        self._address, self._met_at = address, now

    def has_moved(self, address: str, now: float) -> bool:
        """Take note that a client was at an address; return whether the connection is outdated."""
        if not self._address or address in ("", self._address):
            self._met_at = now
        return now >= self._met_at + _MOVED_SECONDS
