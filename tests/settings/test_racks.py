"""Racks of brokers by their node ids."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.cli.sources import environment_layer
from tests.settings.samples import settings_of


@pytest.mark.parametrize("value", [["1=eu-1a", "20=b=c"], "1=eu-1a, 20=b=c"])
def test_nodes_and_racks(value: Any) -> None:
    settings = settings_of(racks=value)
    assert settings.racks_by_node == {1: "eu-1a", 20: "b=c"}
    assert settings.model_dump()["racks"] == ["1=eu-1a", "20=b=c"]


@pytest.mark.parametrize(
    "value",
    [{1: "a"}, ["1"], ["1="], ["a=1"], [1], ["-1=a"], ["2147483648=a"], ["1=a", "1=b"], "1=a,"],
)
def test_what_is_none_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match="racks"):
        settings_of(racks=value)


def test_in_the_environment_they_are_one_text() -> None:
    layer = environment_layer({"LEADER_HINTS_RACKS": "1=eu-1a,2=eu-1b"})
    assert settings_of(**layer.values).racks_by_node == {1: "eu-1a", 2: "eu-1b"}


def test_workers_know_nothing_of_replicas() -> None:
    with pytest.raises(ValidationError, match="closest_replica needs workers: 1"):
        settings_of(closest_replica="observe", workers=2)
