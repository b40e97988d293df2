"""Chromium without a window: what a page looks like to a person's browser, as its DOM."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

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
