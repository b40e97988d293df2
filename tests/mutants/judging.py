"""What finds a mutant.

First the unit tests that mirror its file, then worlds, then the other tests of core and of the
questions to brokers.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.table import ROOT, Mutant

#: Seconds after which a run counts as one that never ends, which finds a mutant as well.
_PATIENCE: Final = 1800
#: Tests that may find what neither those of the file nor worlds do.
_REST: Final = ("tests/core", "tests/net/metadata")
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?(tests/[\w/]+\.py)", re.MULTILINE)
_BROKE = re.compile(r"^seed (\d+): (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``by``: the test file or the rule that found it, "" for nothing. ``worlds``: how many were
    run, up to the one that broke.
    """

    by: str
    worlds: int = 0


def judge(mutant: Mutant, seeds: int) -> Verdict:
    """Run tests and at most ``seeds`` worlds with a mutant, until one of them finds it.

    Worlds are run from the mutant's first seed on: few others have what shows it.
    """
    if not mutant.fix:
        found = _tests(mutant, _mirrored(mutant))
        if found:
            return Verdict(found)
    verdict = _worlds(mutant, seeds)
    if verdict.by or mutant.fix:
        return verdict
    return Verdict(_tests(mutant, _REST), verdict.worlds)


def _mirrored(mutant: Mutant) -> tuple[str, ...]:
    """Return the mirrored test of a file, and those of its folder; the first one runs first."""
    below = Path("tests") / mutant.file
    own = below.with_name(f"test_{below.name}")
    paths = (own, below.parent) if (ROOT / own).exists() else (below.parent,)
    return tuple(map(str, paths))


def _tests(mutant: Mutant, paths: tuple[str, ...]) -> str:
    """Return the test file that found a mutant, "" for none."""
    arguments = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", *paths)
    code, output = _run(mutant, "pytest", *arguments)
    if code is None:
        return "no end of the tests"
    failed = _FAILED.search(output)
    if code and failed is None:
        raise RuntimeError(f"{mutant.name}: pytest failed without a test that did:\n{output}")
    return failed[1] if code and failed else ""


def _worlds(mutant: Mutant, seeds: int) -> Verdict:
    few = "--first", str(mutant.first), "--seeds", str(seeds)
    code, output = _run(mutant, "tests.world", "--brief", *few)
    if code is None:
        return Verdict("no end of a world")
    broke = _BROKE.search(output)
    if code and broke is None:
        raise RuntimeError(f"{mutant.name}: a world failed without a rule that broke:\n{output}")
    return Verdict(broke[2], int(broke[1]) - mutant.first + 1) if broke else Verdict("", seeds)


def _run(mutant: Mutant, module: str, *arguments: str) -> tuple[int | None, str]:
    """Return the exit code and what was printed; ``None``: it did not end."""
    command = [sys.executable, "-m", "tests.mutants.plant", mutant.name, module, *arguments]
    # Hypothesis draws the same cases each time then, so that no verdict is luck.
    environment = {**os.environ, "CI": "true"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            check=False,
            text=True,
            timeout=_PATIENCE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout
