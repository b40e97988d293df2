"""Holds: how long an error response waits for a hint."""

from pydantic import Field

from leader_hints.settings.fields import Group, seconds, whole


class HoldSettings(Group):
    """How long an error response waits for a hint. Responses queued behind it wait too."""

    deadline_ms: int = whole(
        100,
        0,
        10000,
        "Longest hold, from the first error of a partition on a broker under one epoch. 0: hold "
        "nothing, and give only the hints that are known already. To look at a response with more "
        "than 200 failed partitions may take grace_ms all the same. A busy proxy ends holds up to "
        "a quarter earlier, so as not to be late.",
    )
    kraft_ms: int = whole(
        500,
        0,
        10000,
        "In front of KRaft brokers, in place of deadline_ms and of link_ms_per_second where these "
        "are less, but not 0. Such a broker may learn half a second late that it leads, and until "
        "then no client is served.",
    )
    shared_response_ms: int = whole(
        20,
        0,
        10000,
        "Longest hold where other partitions in the response carry records or acknowledgements.",
    )
    grace_ms: int = whole(
        20,
        0,
        10000,
        "Longest wait for the response's remaining failed partitions after the first has its hint.",
    )
    link_ms_per_second: int = whole(
        100,
        0,
        1000,
        "Longest that one link is held in each second, all its responses together. To look at "
        "those with more than 200 failed partitions may take grace_ms more.",
    )
    confirm_ms: int = whole(
        25,
        0,
        1000,
        "How long a hint waits until the hinted leader confirms that it leads, if it does not "
        "answer; more than refresh_interval_ms, or it is not asked twice. A client that arrives "
        "before the leader knows of its leadership pays a back-off.",
    )

    settle: bool = Field(
        default=False,
        strict=True,
        description="Whether errors that can carry no hint wait, too: until the Metadata of all "
        "brokers names the new leader, within the bounds above. Then the client's first Metadata "
        "is fresh, and most clients do not back off. No byte of the response changes. A broker "
        "that has not answered for 50 ms is left out. Produce errors wait only if the producer is "
        "idempotent or transactional: the records of others would change their order. Clusters in "
        "KRaft mode gain nothing by it.",
    )

    @property
    def deadline(self) -> float:
        """``deadline_ms`` in seconds."""
        return seconds(self.deadline_ms)

    @property
    def kraft_most_ms(self) -> int:
        """Milliseconds of the longest hold in front of KRaft brokers."""
        held = min(self.deadline_ms, self.link_ms_per_second)
        return held and max(held, self.kraft_ms)

    @property
    def kraft(self) -> float:
        """``kraft_ms`` in seconds."""
        return seconds(self.kraft_ms)

    @property
    def shared_response(self) -> float:
        """``shared_response_ms`` in seconds."""
        return seconds(self.shared_response_ms)

    @property
    def grace(self) -> float:
        """``grace_ms`` in seconds."""
        return seconds(self.grace_ms)

    @property
    def link_per_second(self) -> float:
        """``link_ms_per_second`` in seconds."""
        return seconds(self.link_ms_per_second)

    @property
    def confirm(self) -> float:
        """``confirm_ms`` in seconds."""
        return seconds(self.confirm_ms)
