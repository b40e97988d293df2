"""Which topics are counted: all, none, or a list."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.settings.metrics import MetricsSettings


@pytest.mark.parametrize(
    ("value", "topics"),
    [
        (True, True),
        (False, False),
        ("orders, payments", ("orders", "payments")),
        (["orders"], ("orders",)),
    ],
)
def test_topics_are_all_none_or_named(value: Any, topics: bool | tuple[str, ...]) -> None:
    metrics = MetricsSettings(topics=value)

    assert metrics.topics == topics
    assert MetricsSettings.model_validate(metrics.model_dump(mode="json")) == metrics


@pytest.mark.parametrize("value", [5, "a b", ["a" * 250], [1], None])
def test_refuses_what_is_no_topic(value: Any) -> None:
    with pytest.raises(ValidationError, match="allowed: true, false, or a list of topic names"):
        MetricsSettings(topics=value)
