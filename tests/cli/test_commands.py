"""The commands that run nothing, and what a mistake ends with: an exit code and clear lines."""

import json
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

from leader_hints.faults.fault import Action
from leader_hints.settings.settings import Settings
from tests.cli.commands import COMMAND, clean_environment, leader_hints

ROOT = Path(__file__).parents[2]
ROUTE = "--route=127.0.0.1:19092=broker-1:9092"


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    done = leader_hints("--version")

    assert (done.returncode, done.stdout) == (0, f"leader-hints {project['version']}\n")


def test_it_also_runs_as_a_module() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "leader_hints.cli.main",
            "config",
            "check",
            ROUTE,
            "--hints",
            "loud",
        ],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'leader-hints: --hints: hints is "loud"; allowed: on, observe, off\n'


@pytest.mark.parametrize("command", [["config", "schema"], ["--help"], ["journal", "schema"]])
def test_output_that_cannot_be_written_is_a_failure_told_in_one_line(command: list[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [COMMAND, *command],
            env=clean_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == ("leader-hints: the output cannot be written: No space left on device\n")


def test_schema_is_a_valid_json_schema() -> None:
    done = leader_hints("config", "schema")

    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["properties"]) == set(Settings.model_fields)
    assert done.returncode == 0


def test_the_journals_schema_is_the_published_one() -> None:
    done = leader_hints("journal", "schema")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "docs" / "journal.schema.json").read_text(encoding="utf-8")


def test_status_schema_is_the_published_one() -> None:
    done = leader_hints("status-schema")

    assert done.returncode == 0
    assert done.stdout == (ROOT / "docs" / "status.schema.json").read_text(encoding="utf-8")


def test_check_prints_what_is_in_force_as_a_file_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("hints: off\nhold: {grace_ms: 7}\n", encoding="utf-8")
    arguments = ["--config", str(tmp_path / "one.yaml"), ROUTE, "--admin", "[::1]:9100"]
    check = ("config", "check", "--skip", "ports")

    first = leader_hints(*check, *arguments, "--log-level", "debug")
    (tmp_path / "two.yaml").write_text(first.stdout, encoding="utf-8")
    second = leader_hints(*check, "--config", str(tmp_path / "two.yaml"))

    assert (first.returncode, first.stderr) == (0, "")
    in_force = yaml.safe_load(first.stdout)
    (route,) = in_force["routes"]
    assert (route["listen"], route["upstream"]) == ("127.0.0.1:19092", "broker-1:9092")
    assert route["name"] == "127.0.0.1:19092"
    assert in_force["hints"] == "off"
    assert in_force["hold"]["grace_ms"] == 7
    assert in_force["admin"] == "[::1]:9100"
    assert (in_force["log"]["level"], in_force["log"]["format"]) == ("debug", "auto")
    assert in_force["connect_timeout_ms"] == 10000
    assert (second.returncode, second.stdout) == (0, first.stdout)


def test_the_file_can_be_named_by_a_variable(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("hints: off\n", encoding="utf-8")

    done = leader_hints(
        "config", "check", ROUTE, variables={"LEADER_HINTS_CONFIG": str(tmp_path / "one.yaml")}
    )

    assert yaml.safe_load(done.stdout)["hints"] == "off"


@pytest.mark.parametrize("command", [("run",), ("config", "check")])
def test_each_problem_is_a_line_and_ends_with_2(command: tuple[str, ...]) -> None:
    done = leader_hints(*command, "--hints=loud", "--admin=x", ROUTE)

    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(line.split(" is ")[0] for line in done.stderr.splitlines()) == [
        "leader-hints: --admin: admin",
        "leader-hints: --hints: hints",
    ]


def test_run_without_a_route_ends_with_2() -> None:
    done = leader_hints("run")

    assert done.returncode == 2
    assert done.stderr.startswith("leader-hints: no route: give --route LISTEN=UPSTREAM, ")
    assert len(done.stderr.splitlines()) == 1


def test_a_bad_variable_ends_with_2() -> None:
    done = leader_hints("run", ROUTE, variables={"LEADER_HINTS_HOLD__DEADLINE_MS": "soon"})

    assert done.returncode == 2
    assert done.stderr == (
        "leader-hints: environment variable LEADER_HINTS_HOLD__DEADLINE_MS: hold.deadline_ms is "
        '"soon"; allowed: a whole number from 0 to 10000\n'
    )


@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"], ["run", "--nonsense"]])
def test_bad_use_ends_with_2(arguments: list[str]) -> None:
    done = leader_hints(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "nonsense" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_flag_and_its_values() -> None:
    done = leader_hints("run", "--help")

    assert done.returncode == 0
    for text in (
        "--config FILE",
        "--route LISTEN=UPSTREAM",
        "--hints [on|observe|off]",
        "--admin HOST:PORT",
        "--log-level [debug|info|warning|error]",
        "--log-format [auto|json|console]",
    ):
        assert text in done.stdout


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_wait_gone_waits_for_no_time_that_is_none(seconds: str) -> None:
    refused = leader_hints("wait-gone", "--at-most", seconds, "--route", "l:1=u:2")
    assert refused.returncode == 2
    assert "--at-most" in refused.stderr


def test_wait_gone_ends_with_1_while_the_broker_is_there_and_with_0_when_it_has_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        host, port = broker.getsockname()
        route = f"--route=127.0.0.1:0={host}:{port}"
        there = leader_hints("wait-gone", route, "--at-most", "0.2")
    gone = leader_hints("wait-gone", route)

    assert there.returncode == 1
    assert there.stderr == f"leader-hints: still there after 0.2 s: {host}:{port}\n"
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "")


def test_help_lists_what_each_fault_does() -> None:
    done = leader_hints("fault", "begin", "--help")

    listed = [line.split() for line in done.stdout.partition("Actions:")[2].splitlines() if line]
    assert [words[0] for words in listed] == [action.value for action in Action]
    assert all(len(words) > 3 for words in listed)


def test_shells_complete_its_commands() -> None:
    words = {"COMP_WORDS": "leader-hints co", "COMP_CWORD": "1"}
    done = leader_hints(variables={"_LEADER_HINTS_COMPLETE": "bash_complete", **words})

    assert done.stdout.splitlines() == ["plain,config", "plain,conformance"]
