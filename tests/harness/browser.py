"""Chromium without a window: what a page looks like to a person's browser."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pytest

from tests.harness import processes

#: Nothing but the page: no updates, no first-run pages, no talk with anybody else.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
#: Of the page's own clock, which waits for answers from the network.
_BUDGET_MS = 3000
_DEADLINE_S = 60.0


def chromium() -> str:
    """The path of Chromium; skips the test where there is none, but never with CI=true."""
    found = shutil.which("chromium")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("no chromium: install Debian's package chromium")
    assert found is not None, "no chromium"
    return found


def dom_of(url: str, folder: Path, *flags: str) -> str:
    """The document at `url` after its scripts have run, as markup."""
    budget = f"--virtual-time-budget={_BUDGET_MS}"
    done = subprocess.run(
        [chromium(), *_FLAGS, f"--user-data-dir={folder}", budget, "--dump-dom", *flags, url],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=True,
    )
    return done.stdout


class View(NamedTuple):
    """A page as it is shown: ``console``: what it or the browser said there; ``faults``: what is
    wider than the page, cut off, or over other text, in words; ``picture``: PNG."""

    console: list[str]
    faults: list[str]
    picture: bytes


class Browser:
    """Chromium, started once for many views, steered by its DevTools protocol.

    ``folder``: takes its profile and its log.
    """

    def __init__(self, folder: Path) -> None:
        self._process = processes.start(
            # The protocol is on 3 and 4.
            [
                *("sh", "-c", 'exec "$@" 3<&0 4>&1 >&2', "sh", chromium(), *_FLAGS),
                *(f"--user-data-dir={folder}", "--remote-debugging-pipe"),
            ],
            talk=True,
            errors=folder.with_suffix(".log"),
        )
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        self._rest = b""
        self._session = ""
        (first, *_) = self._ask("Target.getTargets")["targetInfos"]
        flat = {"targetId": first["targetId"], "flatten": True}
        self._session = self._ask("Target.attachToTarget", **flat)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self._ask(f"{domain}.enable")
        # As phones show them.
        self._ask("Emulation.setScrollbarsHidden", hidden=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        processes.end(self._process)

    def view(self, url: str, width: int, *, dark: bool) -> View:
        """Show a page ``width`` pixels wide, with all of its details open."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self._ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._message())
        found = self._ask("Runtime.evaluate", expression=_FAULTS, returnByValue=True)["result"]
        assert "value" in found, found
        shot = self._ask("Page.captureScreenshot", captureBeyondViewport=True)
        console = [
            json.dumps(event["params"]) for event in self._events if event["method"] in _CONSOLE
        ]
        return View(console, found["value"], base64.b64decode(shot["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        to = self._process.stdin
        assert to is not None
        to.write(json.dumps(message) + "\0")
        to.flush()
        while (answer := self._message()).get("id") != number:
            self._events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self) -> dict[str, Any]:
        from_ = self._process.stdout
        assert from_ is not None
        while b"\0" not in self._rest:
            ready, _, _ = select.select([from_], [], [], _DEADLINE_S)
            more = os.read(from_.fileno(), 1 << 20) if ready else b""
            assert more, "the browser says nothing"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


#: What a console has.
_CONSOLE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
#: Finds what a person would see of a bad layout; a part that scrolls may be wider than the page.
_FAULTS = """(() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const found = [], root = document.documentElement, width = root.clientWidth;
  const named = (of) => `${of.tagName} ${of.className.baseVal ?? of.className}: ` +
    of.textContent.trim().slice(0, 60);
  if (root.scrollWidth > width) found.push(`the page is ${root.scrollWidth} of ${width} wide`);
  const scrolls = (of) => of.closest("svg, .scroll");
  for (const one of document.querySelectorAll("body *")) {
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    if (!box.width || one.closest("svg") !== null) continue;
    if (!scrolls(one) && (box.right > width + 1 || box.left < -1))
      found.push(`outside: ${named(one)}`);
    if (["hidden", "clip"].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1)
      found.push(`cut off: ${named(one)}`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    const texts = [...svg.querySelectorAll("text")].map((of) => [of, of.getBoundingClientRect()]);
    texts.forEach(([of, at], number) => {
      if (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 ||
          at.bottom > box.bottom + 1) found.push(`outside of ${svg.ariaLabel}: ${named(of)}`);
      for (const [other, there] of texts.slice(number + 1)) {
        const across = Math.min(at.right, there.right) - Math.max(at.left, there.left);
        const down = Math.min(at.bottom, there.bottom) - Math.max(at.top, there.top);
        if (across > 1 && down > 4) found.push(`over each other in ${svg.ariaLabel}: ` +
          `${named(of)} / ${named(other)}`);
      }
    });
  }
  return found;
})()"""
