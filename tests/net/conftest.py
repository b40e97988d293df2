"""Fixtures of the tests of apps."""

from collections.abc import Iterator

import pytest
import structlog

from proxy.observe.logs import configure_logs
from tests.net.serving import Log


@pytest.fixture
def log() -> Iterator[Log]:
    """What is logged."""
    stream = Log()
    configure_logs("debug", "json", stream)
    yield stream
    structlog.reset_defaults()
