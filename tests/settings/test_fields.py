"""Fields: what is refused alike in all groups."""

import math

import pytest

from leader_hints.settings.fields import refuse_twice, seconds, seconds_or_never


def test_milliseconds_become_seconds() -> None:
    assert seconds(1500) == 1.5
    assert seconds(0) == 0.0
    assert seconds_or_never(1500) == 1.5
    assert seconds_or_never(0) == math.inf


def test_refuses_what_occurs_twice_and_names_all_of_it() -> None:
    refuse_twice("name", ["a", "b"])

    with pytest.raises(ValueError, match="the name a, b is used twice"):
        refuse_twice("name", ["b", "a", "b", "a", "c"])
