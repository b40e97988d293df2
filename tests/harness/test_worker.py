"""A record without an outcome is told to be the client's, whatever else was reported."""

from typing import ClassVar

import pytest

from tests.harness.python_client import Delivered
from tests.harness.worker import ProducerRun


class _Forgetful:
    """A producer that reports what becomes of each record but the one of ``forgets``."""

    error: ClassVar[type[Exception]] = OSError

    def __init__(self, forgets: int | None) -> None:
        self._forgets = forgets
        self._sent = 0

    def send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        if self._sent != self._forgets:
            delivered(self._sent, None)
        self._sent += 1

    def flush(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        pass

    def begin_transaction(self) -> None:
        pass

    def commit_transaction(self) -> None:
        pass

    def abort_transaction(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("forgets", [0, 3, None])
def test_a_record_that_the_client_forgets_is_named(forgets: int | None) -> None:
    options = {"topic": "t", "partitions": "0", "rate": "0", "count": "4", "size": "9"}
    run = ProducerRun(
        "p", {**options, "transaction": "0"}, lambda topic, settings: _Forgetful(forgets)
    )
    if forgets is None:
        run.work()
        return
    with pytest.raises(AssertionError, match=rf"reported no outcome of \[\(0, {forgets}\)\]"):
        run.work()
