"""Each mutant still applies, and worlds find those for which the list says so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.table import MUTANTS, ROOT, Mutant
from tests.world.rules import RULES

_IN_WORLDS = [mutant for mutant in MUTANTS.values() if mutant.worlds]
#: A row of the table in docs/reliability.md.
_ROW = re.compile(r"^\| (.+) \| `(.+?)`: (.+) \| `(\w+)` \| (\d+) \|$", re.MULTILINE)


def test_each_mutant_applies() -> None:
    for mutant in MUTANTS.values():
        compile(mutant.source(), mutant.path, "exec")


def test_no_two_mutants_are_the_same() -> None:
    assert len({(m.file, m.old, m.new) for m in MUTANTS.values()}) == len(MUTANTS)


def test_a_mutant_whose_text_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 times"):
        Mutant("gone", "", "core/route.py", "no such text", "").source()


def _planted(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    planted = [sys.executable, "-m", "tests.mutants.plant", name, *command]
    return subprocess.run(planted, cwd=ROOT, capture_output=True, text=True, check=False)


def test_each_mutated_module_can_be_imported() -> None:
    program = (
        "import sys\n"
        "from tests.mutants.plant import plant\n"
        "from tests.mutants.table import MUTANTS\n"
        "for mutant in MUTANTS.values():\n"
        "    sys.modules.pop(mutant.module, None)\n"
        "    plant(mutant)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_planted_mutant_is_what_tests_run_with(tmp_path: Path) -> None:
    test = tmp_path / "test_planted.py"
    test.write_text(
        "from leader_hints.core.cluster import poll_plan\n"
        "def test_it() -> None:\n"
        "    assert poll_plan.FULL_POLL_EVERY == 5\n"
    )
    done = _planted("new topics are not seen", "pytest", "-p", "no:cacheprovider", str(test))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout


@pytest.mark.parametrize("mutant", _IN_WORLDS, ids=lambda mutant: mutant.name)
def test_worlds_find_a_mutant(mutant: Mutant) -> None:
    few = "--first", str(mutant.first), "--seeds", str(mutant.worlds)
    done = _planted(mutant.name, "tests.world", "--brief", *few)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_documentation_has_each_fixed_defect_that_worlds_find_again() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    _, _, section = page.partition("## Planted defects in simulated worlds\n")
    rows = _ROW.findall(section.partition("\n## ")[0])
    fixes = [mutant for mutant in MUTANTS.values() if mutant.fix]
    assert [row[:3] for row in rows] == [(m.fix, m.name, m.does) for m in fixes]
    for mutant, (*_, rule, seed) in zip(fixes, rows, strict=True):
        assert rule in {rule.__name__ for rule in RULES}
        looked_at = range(mutant.first, mutant.first + mutant.worlds)
        assert int(seed) in looked_at, "no test looks for it there"
