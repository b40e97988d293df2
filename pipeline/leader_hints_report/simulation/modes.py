"""What is compared: with which help clients find the next leader."""

from enum import StrEnum


class Mode(StrEnum):
    """``NO_PROXY``: brokers give no hints. ``HINTS``: proxies as by default. ``SETTLED``: with
    ``hold.settle`` besides. ``NATIVE``: brokers of 3.7, which give hints themselves.
    ``NO_BACKOFF``: KIP-951's rejected alternative: clients do not back off, but wait for Metadata.
    """

    NO_PROXY = "no-proxy"
    HINTS = "hints"
    SETTLED = "settled"
    NATIVE = "native"
    NO_BACKOFF = "no-backoff"

    @property
    def has_proxy(self) -> bool:
        """Whether there are proxies."""
        return self in (Mode.HINTS, Mode.SETTLED)

    @property
    def gives_hints(self) -> bool:
        """Whether clients that use hints get them."""
        return self in (Mode.HINTS, Mode.SETTLED, Mode.NATIVE)
