"""The journal's settings: places that cannot be written to, and times in seconds."""

import pytest
from pydantic import ValidationError

from leader_hints.settings.journal import JournalSettings
from tests.settings.samples import settings_of


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "files"}, "kind files needs path"),
        ({"kind": "topic"}, "kind topic needs bootstrap"),
        ({"kind": "topic", "bootstrap": "one:9092,two"}, "bootstrap: two: no port"),
        ({"kind": "topic", "bootstrap": "one:9092, two:9092"}, "should match pattern"),
        ({"kind": "topic", "bootstrap": "one:9092", "topic": "a b"}, "should match pattern"),
        (
            {"kind": "files", "path": "p", "file_bytes": 2048, "kept_bytes": 2047},
            "kept_bytes is 2047, less than file_bytes, 2048",
        ),
        ({"sidecar": "a" * 201}, "should match pattern"),
        (
            {"kind": "files", "path": "p", "sidecar": "a" * 181},
            "sidecar has 181 letters; with kind files, whose names begin with it, it may have 180",
        ),
        ({"sidecar": "a/b"}, "should match pattern"),
        ({"sidecar": "a_b"}, "should match pattern"),
        ({"path": "a\0"}, "should match pattern"),
    ],
)
def test_refuses_journals_that_lead_nowhere(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings_of(journal=settings)


def test_times_are_in_seconds() -> None:
    journal = JournalSettings(file_age_ms=1500, flush_ms=20)

    assert (journal.file_age, journal.flush) == (1.5, 0.02)
