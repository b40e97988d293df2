"""What holds for all tests does."""

import pytest
from coverage import Coverage


@pytest.mark.no_cover
def test_coverage_does_not_follow_what_is_not_measured() -> None:
    """In a worker it did: each such test took twice its time."""
    assert Coverage.current() is None
