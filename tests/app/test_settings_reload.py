"""Settings that are read again while a disk hangs."""

import threading
from collections.abc import Callable, Iterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leader_hints.app.settings_reload import SettingsReload
from leader_hints.core.events import Event, SettingsRefused, SettingsReloaded
from leader_hints.settings.settings import Settings
from tests.harness.waiting import until
from tests.settings.samples import settings_of


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """Ends what hangs; set at the end in any case."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_reading_that_hangs_is_reported_and_keeps_no_later_one_from_it(
    mock_clock: MockClock, let_go: threading.Event
) -> None:
    first = _Hanging(settings_of(hints="observe"), let_go)
    reads = _reads(first)
    events, applied = list[Event](), list[str]()
    reload = SettingsReload(
        settings_of(),
        lambda: next(reads)(),
        lambda settings: applied.append(settings.hints),
        events.append,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reload.run)
        await wait_all_tasks_blocked()
        await reload.run()
        assert events == [SettingsReloaded(keys=("hints",))]
        mock_clock.jump(60)
    assert events[1:] == [
        SettingsRefused(keys=(), reason="they were not read within 60 s; does a disk hang?")
    ]
    assert applied == ["off"]


async def test_what_was_to_be_read_before_does_not_count(let_go: threading.Event) -> None:
    first = _Hanging(settings_of(hints="observe"), let_go)
    reads = _reads(first)
    events, applied = list[Event](), list[str]()
    reload = SettingsReload(
        settings_of(),
        lambda: next(reads)(),
        lambda settings: applied.append(settings.hints),
        events.append,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reload.run)
        await trio.to_thread.run_sync(until, first.entered.is_set, "it is read")
        await reload.run()
        let_go.set()
    assert (applied, events) == (["off"], [SettingsReloaded(keys=("hints",))])


def _reads(first: "_Hanging") -> Iterator[Callable[[], Settings]]:
    yield first
    yield lambda: settings_of(hints="off")


class _Hanging:
    def __init__(self, settings: Settings, let_go: threading.Event) -> None:
        self.entered = threading.Event()
        self._settings = settings
        self._let_go = let_go

    def __call__(self) -> Settings:
        self.entered.set()
        self._let_go.wait()
        return self._settings
