"""What errors show, and what they keep to themselves."""

import pytest

from leader_hints.errors import ConfigurationError, LeaderHintsError, places_of


def _raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_all_problems_are_reported_one_on_a_line() -> None:
    error = ConfigurationError("one thing", "another")
    assert str(error) == "one thing\nanother"
    assert error.problems == ("one thing", "another")


def test_bad_configuration_has_an_exit_code_of_its_own() -> None:
    assert LeaderHintsError.exit_code == 1
    assert ConfigurationError.exit_code == 2


def test_the_place_of_an_error_is_shown_and_its_text_is_not() -> None:
    text = places_of(_raised(ValueError("a secret")))
    assert text.endswith("ValueError")
    assert "in _raised" in text
    assert "a secret" not in text


def test_of_a_group_each_error_is_shown() -> None:
    inner = ExceptionGroup("more", [_raised(KeyError("a secret"))])
    group = ExceptionGroup("a secret", [_raised(OSError("a secret")), inner])
    lines = places_of(_raised(group)).splitlines()
    assert [line for line in lines if line.endswith(("Error", "Group"))] == [
        "ExceptionGroup",
        "OSError",
        "ExceptionGroup",
        "KeyError",
    ]
    assert not [line for line in lines if "a secret" in line]
