"""How the command `leader-hints check` is used, and how it ends."""

import json
from pathlib import Path

import jsonschema

from tests.cli.commands import leader_hints

_SCHEMA = Path(__file__).parents[2] / "docs" / "check.schema.json"


def test_a_problem_ends_with_1() -> None:
    # Nothing listens on port 1, and no name is asked for.
    done = leader_hints("check", "--route", "127.0.0.1:0=127.0.0.1:1")

    assert (done.returncode, done.stderr) == (1, "")
    assert "upstream_unreachable" in done.stdout


def test_it_takes_settings_from_a_file_and_prints_json(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("routes: [{name: a, listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}]\n")

    done = leader_hints("check", "--json", "--config", str(file))

    assert done.returncode == 1
    written = json.loads(done.stdout)
    jsonschema.validate(written, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    assert [route["route"] for route in written["routes"]] == ["a"]


def test_bad_use_ends_with_2() -> None:
    done = leader_hints("check")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leader-hints: no route: ")
