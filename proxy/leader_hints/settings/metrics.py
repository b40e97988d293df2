"""Metrics that are counted only on request."""

import re
from typing import Annotated, Any, Final

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from leader_hints.settings.fields import Group

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)  # Kafka takes no others


def _read_topics(value: Any) -> bool | tuple[str, ...]:
    """Read true, false or a list of names; in one text they are separated by commas."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    if not isinstance(value, list | tuple) or not all(
        isinstance(name, str) and _TOPIC_NAME.fullmatch(name) for name in value
    ):
        raise ValueError("allowed: true, false, or a list of topic names")
    return tuple(value)


_TOPICS_SCHEMA: Final = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string", "pattern": f"^{_TOPIC_NAME.pattern}$"}},
    ]
}


class MetricsSettings(Group):
    """Additional metrics."""

    topics: Annotated[
        bool | tuple[str, ...],
        PlainValidator(_read_topics),
        PlainSerializer(lambda topics: topics if isinstance(topics, bool) else [*topics]),
        WithJsonSchema(_TOPICS_SCHEMA),
    ] = Field(
        default=False,
        description="Topics whose hints and leader moves are counted by topic: true for all, at "
        "most 1000 of them, or a list of names. Each topic adds some ten time series, until it is "
        "deleted.",
    )
