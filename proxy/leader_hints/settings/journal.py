"""The journal: which events are recorded for later analysis, and where."""

from typing import Literal, Self

from pydantic import Field, model_validator

from leader_hints.address import Address
from leader_hints.settings.fields import Group, seconds, whole

#: Letters: a file's name may have 255, and time, run and number take 74 or 75 of them.
_MOST_IN_NAMES = 180
JournalKind = Literal["off", "files", "topic"]


class JournalSettings(Group):
    """Which events are recorded for later analysis, and where."""

    kind: JournalKind = Field(
        default="off",
        description="off: no journal. files: JSON lines in a directory. topic: records in Kafka. "
        "`leader-hints journal schema` prints the lines' schema.",
    )
    sidecar: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9.-]{0,200}$",
        description="Names this process in the journal; each needs a name of its own. Empty: the "
        "host's name.",
    )
    path: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The directory for kind files. It must exist; several sidecars may share it.",
    )
    file_bytes: int = whole(
        67108864, 1024, 1099511627776, "Size at which a file is finished, and another begun."
    )
    file_age_ms: int = whole(
        300000, 1000, 86400000, "Age at which a file is finished: readers take finished files only."
    )
    kept_bytes: int = whole(
        1073741824,
        1024,
        1099511627776,
        "Most that this sidecar's finished files take up; the oldest are removed beyond it.",
    )
    bootstrap: str = Field(
        default="",
        pattern=r"^[^\s,]*(,[^\s,]+)*$",
        description="HOST:PORT of one or more brokers, with commas between, for kind topic. It may "
        "lead through the proxy's own routes: the journal's own traffic is not journalled.",
    )
    topic: str = Field(
        default="leader-hints-journal",
        pattern=r"^[A-Za-z0-9._-]{1,249}$",
        description="The topic for kind topic. Create it first, with any number of partitions: "
        "records are keyed by sidecar.",
    )
    properties_file: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="A file of librdkafka properties for kind topic, a line NAME=VALUE for each, "
        "such as security.protocol and sasl.password; empty: none. Protect it from other users.",
    )
    buffer_bytes: int = whole(
        8388608,
        65536,
        1073741824,
        "Most that waits in memory to be written. Beyond it events are dropped, and counted.",
    )
    flush_ms: int = whole(
        5000,
        0,
        3600000,
        "How long the end of the process may wait for what is in memory to be written, once the "
        "connections are done (drain_ms). The rest is lost.",
    )
    sample_latencies: int = whole(
        0,
        0,
        1000000000,
        "One in so many ordinary exchanges of Produce and Fetch has its latency journalled. 0: "
        "none.",
    )

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if self.kind == "files" and not self.path:
            raise ValueError("kind files needs path, the folder that the files are written to")
        if self.kind == "files" and len(self.sidecar) > _MOST_IN_NAMES:
            raise ValueError(
                f"sidecar has {len(self.sidecar)} letters; with kind files, whose names begin with "
                f"it, it may have {_MOST_IN_NAMES}"
            )
        if self.kind == "files" and self.kept_bytes < self.file_bytes:
            raise ValueError(
                f"kept_bytes is {self.kept_bytes}, less than file_bytes, {self.file_bytes}: one "
                "file would be more than all may be"
            )
        if self.kind == "topic" and not self.bootstrap:
            raise ValueError("kind topic needs bootstrap, the brokers that take the records")
        for address in filter(None, self.bootstrap.split(",")):
            try:
                Address.parse(address)
            except ValueError as error:
                raise ValueError(f"bootstrap: {address}: {error}") from None
        return self

    @property
    def file_age(self) -> float:
        """``file_age_ms`` in seconds."""
        return seconds(self.file_age_ms)

    @property
    def flush(self) -> float:
        """``flush_ms`` in seconds."""
        return seconds(self.flush_ms)
