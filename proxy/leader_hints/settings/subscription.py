"""The subscription: how the view of leaders and epochs is kept fresh."""

from typing import Self

from pydantic import model_validator

from leader_hints.settings.fields import Group, seconds, whole


class SubscriptionSettings(Group):
    """How the view of leaders and epochs is kept fresh, on connections of the proxy's own."""

    poll_interval_ms: int = whole(
        60000, 100, 3600000, "Time between two polls of everything that is known."
    )
    slice_partitions: int = whole(
        2000, 1, 100000, "Most partitions that one Metadata request of a poll asks for."
    )
    refresh_interval_ms: int = whole(
        10, 1, 10000, "Time between two refreshes of the same partitions while a response is held."
    )
    refreshes_per_second: int = whole(
        20, 1, 1000, "Refreshes on demand that the process starts in a second, in the long run."
    )
    refresh_burst: int = whole(
        20, 1, 1000, "Refreshes on demand that may start at once after a quiet time."
    )
    answer_timeout_ms: int = whole(
        2000, 10, 60000, "How long to wait for a broker's answer before reconnecting to it."
    )
    reconnect_min_ms: int = whole(
        100, 10, 60000, "First pause before a broker is tried again; it doubles at each failure."
    )
    reconnect_max_ms: int = whole(
        5000, 10, 600000, "Longest pause before a broker is tried again. At least reconnect_min_ms."
    )

    @model_validator(mode="after")
    def _check_pauses(self) -> Self:
        if self.reconnect_max_ms < self.reconnect_min_ms:
            raise ValueError(
                f"reconnect_max_ms {self.reconnect_max_ms} must be at least "
                f"reconnect_min_ms {self.reconnect_min_ms}"
            )
        return self

    @property
    def poll_interval(self) -> float:
        """``poll_interval_ms`` in seconds."""
        return seconds(self.poll_interval_ms)

    @property
    def refresh_interval(self) -> float:
        """``refresh_interval_ms`` in seconds."""
        return seconds(self.refresh_interval_ms)

    @property
    def answer_timeout(self) -> float:
        """``answer_timeout_ms`` in seconds."""
        return seconds(self.answer_timeout_ms)

    @property
    def reconnect_min(self) -> float:
        """``reconnect_min_ms`` in seconds."""
        return seconds(self.reconnect_min_ms)

    @property
    def reconnect_max(self) -> float:
        """``reconnect_max_ms`` in seconds."""
        return seconds(self.reconnect_max_ms)
