"""Hooks, templates and the changelog are in the forms that tools and people expect."""

import re
import shlex
import tomllib
from typing import Any

import pytest
import yaml

from tests.harness.maven import ROOT

_TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
_KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def _yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_hooks_are_tools_of_the_environment() -> None:
    """So a hook fetches nothing, and says what `make check` says."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    for repository in _yaml(".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            program, *_ = shlex.split(hook["entry"])
            assert hook["language"] == "system"
            assert f"\t{program} " in makefile or f"\t{program}\n" in makefile, program


@pytest.mark.parametrize("file", _TEMPLATES, ids=lambda file: file.stem)
def test_issue_forms_have_what_github_wants(file: Any) -> None:
    form = _yaml(str(file.relative_to(ROOT)))
    assert {"name", "description", "body"} <= form.keys()
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in asked]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)


@pytest.mark.parametrize(
    "file", ["SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", ".github/pull_request_template.md"]
)
def test_links_and_files_that_are_named_are_there(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text) + re.findall(
        r"\b(?:docs/(?:[\w-]+/)*)?[\w-]+\.md\b", text
    )
    for link in links:
        assert (
            "://" in link or (ROOT / file).parent.joinpath(link).exists() or (ROOT / link).exists()
        ), link


def test_the_changelog_begins_with_what_is_not_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in sections[1:])
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= _KINDS
    assert len([line for line in text.splitlines() if line.startswith("- ")]) > 0


def test_the_chart_has_the_packages_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = _yaml("deploy/helm/leader-hints/Chart.yaml")
    assert chart["version"] == chart["appVersion"] == project["version"]
