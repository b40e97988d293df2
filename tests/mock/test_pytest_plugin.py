"""The pytest plugin, by the example that docs/local.md has."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.harness.maven import PYTHONPATH

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 100


def _pytest(folder: Path, text: str) -> str:
    (folder / "test_example.py").write_text(text, encoding="utf-8")
    # Plugins that are installed are not loaded by themselves: here this one is named by its module.
    environment = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": PYTHONPATH,
    }
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "leader_hints.pytest_plugin",
            "-q",
            "--rootdir",
            ".",
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    return ended.stdout


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    page = (_ROOT / "docs" / "local.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    told = _pytest(tmp_path, example)
    assert "4 passed" in told, told


def test_it_loads_nothing_unless_a_fixture_is_used(tmp_path: Path) -> None:
    told = _pytest(
        tmp_path,
        "import sys\n\n\ndef test_nothing():\n"
        "    loaded = {'trio', 'confluent_kafka', 'kio', 'leader_hints.net'} & set(sys.modules)\n"
        "    assert not loaded, loaded\n",
    )
    assert "1 passed" in told, told


def test_pytest_finds_it() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"leader_hints": "leader_hints.pytest_plugin"}
