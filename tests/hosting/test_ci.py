"""The hosted CI does what .ci/run does."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.maven import ROOT
from tests.hosting.actionlint import actionlint

_WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _stages() -> list[str]:
    """The stages of .ci/run, without those that each run begins with."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.findall(r"^(?:stage|beside) (\w+) ", script, re.MULTILINE)
    assert found[:2] == ["install", "venv"]
    return found[2:]


@pytest.mark.timeout(600)  # It is built, once.
def test_workflows_are_what_github_takes(tmp_path: Path) -> None:
    program = actionlint()
    read = subprocess.run([program, *_WORKFLOWS], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stdout + read.stderr

    wrong = tmp_path / "wrong.yml"
    wrong.write_text("on: push\njobs: {x: {runs-on: ubuntu-24.04, steps: [{ruin: x}]}}\n")
    refused = subprocess.run([program, wrong], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "ruin" in refused.stdout


def test_every_stage_is_in_one_job() -> None:
    (file,) = _WORKFLOWS
    workflow: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    jobs = workflow["jobs"]["run"]["strategy"]["matrix"]["stages"]
    assert sorted(" ".join(jobs).split()) == sorted(_stages())


def test_an_unknown_stage_is_refused() -> None:
    ended = subprocess.run(
        [ROOT / ".ci" / "run", "lint", "lnit"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("unknown stage lnit; stages: install venv lint types ")
    assert ended.stderr.split()[-len(_stages()) :] == _stages()
