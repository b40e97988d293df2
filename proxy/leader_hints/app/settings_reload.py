"""Takes the settings again while links are served, as far as that is safe.

Tested in ``tests/cli/test_reload.py``.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import trio

from leader_hints.core.events import Event, SettingsRefused, SettingsReloaded
from leader_hints.errors import ConfigurationError
from leader_hints.settings.settings import Settings

#: Keys, and beginnings of keys, that take effect without a restart.
_SAFE: Final = ("hints", "log.level", "log.levels.", "log.moves_per_second")
_RESTART: Final = "they need a restart or a takeover; nothing was changed"
#: Seconds for reading them.
_PATIENCE: Final = 60.0


class SettingsReload:
    """Reads the settings again on request.

    ``read``: returns them, and raises ConfigurationError where they are not allowed; ``None``: they
    are nowhere to be read again. ``apply``: puts new ones in force, of which only safe keys differ.
    """

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings] | None,
        apply: Callable[[Settings], Awaitable[None]],
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._read = read
        self._apply = apply
        self._emit = emit
        #: How often they were to be read.
        self._asked = 0

    async def run(self) -> None:
        """Read them once more; report what came of it. What is asked for later counts."""
        if self._read is None:
            return
        self._asked += 1
        asked = self._asked
        try:
            with trio.fail_after(_PATIENCE):
                # A thread of its own: one that hangs with its disk may do so for good.
                new = await trio.to_thread.run_sync(
                    self._read, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
                )
        except trio.TooSlowError:
            reason = f"they were not read within {_PATIENCE:g} s; does a disk hang?"
            self._emit(SettingsRefused(keys=(), reason=reason))
            return
        except ConfigurationError as error:
            self._emit(SettingsRefused(keys=(), reason="; ".join(error.problems)))
            return
        if asked != self._asked:
            return
        keys = tuple(_changed(self._settings.model_dump(), new.model_dump()))
        unsafe = tuple(key for key in keys if not _is_safe(key))
        if unsafe:
            self._emit(SettingsRefused(keys=unsafe, reason=_RESTART))
            return
        if keys:
            # First: what is read meanwhile is compared with these.
            self._settings = new
            await self._apply(new)
        self._emit(SettingsReloaded(keys=keys))


def _is_safe(key: str) -> bool:
    return any(key == safe or (safe[-1] == "." and key.startswith(safe)) for safe in _SAFE)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The keys whose values differ, groups key by key; a list is one value."""
    for key, value in after.items():
        name, was = f"{above}{key}", before[key]
        if isinstance(value, dict):
            yield from _changed(was, value, f"{name}.")
        elif value != was:
            yield name
