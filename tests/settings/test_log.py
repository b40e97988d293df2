"""The log's settings: a level for each subsystem."""

from leader_hints.settings.log import LogSettings


def test_subsystems_inherit_the_level() -> None:
    log = LogSettings.model_validate({"level": "warning", "levels": {"hints": "debug"}})

    assert log.by_subsystem["hints"] == "debug"
    assert log.by_subsystem["routes"] == "warning"
    assert log.least == "debug"


def test_without_levels_of_their_own_all_have_the_same() -> None:
    log = LogSettings(level="error")

    assert set(log.by_subsystem.values()) == {"error"}
    assert log.least == "error"
