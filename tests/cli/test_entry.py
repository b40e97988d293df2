"""Where the command begins: its signals before anything is imported."""

import os
import signal
from collections.abc import Iterator

import pytest

from leader_hints.cli import entry


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The handler of SIGTERM at each run of the command line, which does nothing."""
    seen: list[object] = []
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(
        "leader_hints.cli.main.main", lambda: seen.append(signal.getsignal(signal.SIGTERM))
    )
    yield seen
    signal.signal(signal.SIGTERM, before)


def test_process_1_of_a_container_ends_by_sigterm_while_it_imports(
    ran: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(os, "_exit", codes.append)
    entry.main()
    assert len(ran) == 1
    signal.raise_signal(signal.SIGTERM)
    assert codes == [0]


def test_elsewhere_sigterm_is_left_as_it_is(ran: list[object]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    entry.main()
    assert ran == [before]
