"""Values as people read them."""

import pytest

from leader_hints_report.report.format import count, milliseconds, show
from leader_hints_report.report.listings import Kind


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 ms"),
        (0.1234, "0.123 ms"),
        (12.345, "12.3 ms"),
        (999.9, "1000 ms"),
        (1000.0, "1 s"),
        (59_990.0, "60 s"),
        (90_000.0, "1.5 min"),
        (7_200_000.0, "2 h"),
        (86_400_000.0 * 12345, "12345 d"),
        (-30.0, "-30 ms"),
    ],
)
def test_milliseconds(value: float, text: str) -> None:
    assert milliseconds(value) == text


def test_counts_have_thin_spaces() -> None:
    assert count(1234567) == "1\u202f234\u202f567"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.MS, None, ""),
        (Kind.SECONDS, 1.5, "1.5 s"),
        (Kind.YES, False, "no"),
        (Kind.BYTES, 0, "0 B"),
        (Kind.BYTES, 12_345, "12.3 kB"),
        (Kind.BYTES, 1_999_000_000.0, "2 GB"),
        (Kind.BYTES, 123_456_000_000_000, "123 TB"),
        (Kind.PRICE, 1234.567, "1\u202f234.57"),
        (Kind.SHARE, 0.9512, "95.1 %"),
        (Kind.TIME, "2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05"),
        (Kind.TEXT, "a\nb", "a\\nb"),
        (Kind.DAY, "2026-01-02", "2026-01-02"),
    ],
)
def test_values(kind: Kind, value: str | float | None, text: str) -> None:
    assert show(kind, value) == text
