"""The conformance command with a real client."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.cli.commands import COMMAND
from tests.harness.maven import PYTHONPATH, ROOT
from tests.harness.python_client import CONFLUENT

_TIMEOUT_S = 110
#: The harness has both; one may start seconds after the other.
_BOTH = ("--api", "Produce", "--api", "Fetch")
_FIGURES = re.compile(r"no: (\d+) ms with a hint, (\d+) ms without")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "conformance", *arguments],
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def test_a_client_that_uses_hints_but_keeps_its_back_off() -> None:
    client = [sys.executable, "-m", "tests.conformance.harness", CONFLUENT]
    ended = _run("--json", "--scenario", "backoff", *_BOTH, "--", *client)
    report = json.loads(ended.stdout)
    assert (report["versions"]["Produce"], report["versions"]["Fetch"]) == ([10], [16])
    found = {(t["api"], t["question"]): (t["answer"], t["verdict"]) for t in report["traits"]}
    answer, verdict = found["Fetch", "skipped for a hint"]
    assert answer.startswith("yes"), answer
    assert verdict == "ok"
    # librdkafka keeps its back-off on Produce, which KIP-951 would have it skip. It is the one that
    # it was asked to have, less a fifth by chance (KIP-580).
    answer, verdict = found["Produce", "skipped for a hint"]
    figures = _FIGURES.fullmatch(answer)
    assert figures is not None, answer
    assert min(map(int, figures.groups())) >= 700
    assert verdict == "differs"
    assert ended.returncode == 1


def test_a_client_that_does_nothing_is_reported() -> None:
    ended = _run("--scenario", "move", "--", "true")
    assert ended.returncode == 1
    assert ended.stderr == "leader-hints: the client ended with 0\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--tls", "--", "true"), "TLS and SASL are for --bootstrap"),
        (("--bootstrap", "127.0.0.1:1", "--", "true"), "no cluster at 127.0.0.1:1"),
        (("--bootstrap", "nowhere", "--", "true"), "no port"),
    ],
)
def test_a_cluster_that_cannot_be_had_is_reported(arguments: tuple[str, ...], told: str) -> None:
    ended = _run(*arguments)
    assert ended.returncode in (1, 2)
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_command_must_be_given() -> None:
    ended = _run()
    assert ended.returncode == 2
    assert "no COMMAND" in ended.stderr
