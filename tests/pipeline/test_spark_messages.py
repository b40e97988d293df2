"""Noise goes, all else stays."""

import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from leader_hints_report.spark_messages import kept_back

_NOISE = (
    "WARNING: Using incubator modules: jdk.incubator.vector\n"
    'Setting default log level to "WARN".\n'
    "26/11/26 23:29:04 WARN NativeCodeLoader: Unable to load native-hadoop library\n"
)
_FAILED = (
    'Exception in thread "main" org.apache.spark.SparkException: Could not parse Master URL: x\n'
    "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)\n"
    "Caused by: java.lang.Error: deeper\n"
    "\t... 19 more\n"
)


def _write(text: str, to: int = 2) -> None:
    """Write to standard error, or output, as a process of its own does."""
    program = f"import os; os.write({to}, {text.encode()!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_lines_come_after_the_start_and_noise_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    with kept_back() as messages:
        _write(_NOISE + "a warning\n" + _NOISE + "no end")
        assert capfd.readouterr().err == ""
    messages.reason()  # All of it was read.
    assert capfd.readouterr().err == "a warning\nno end"


def test_progress_without_an_end_of_line_comes_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with kept_back():
        sink = os.dup(2)
    os.write(sink, b"\r[Stage 1")
    seen = ""
    deadline = time.monotonic() + 60
    while "[Stage 1" not in seen:
        assert time.monotonic() < deadline
        seen += capfd.readouterr().err
    os.close(sink)


def test_output_of_java_is_a_message_and_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    with kept_back() as messages:
        _write("a line of -Xlog\n", to=1)
    messages.reason()
    _write("a result\n", to=1)
    assert capfd.readouterr() == ("a result\n", "a line of -Xlog\n")


def test_the_reason_may_be_in_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    with suppress(KeyError), kept_back() as messages:
        _write(
            "Error occurred during initialization of boot layer\n"
            "java.lang.module.FindException: Module jdk.incubator.vector not found\n",
            to=1,
        )
        raise KeyError
    assert messages.reason() == "Module jdk.incubator.vector not found"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (_NOISE + _FAILED, "Could not parse Master URL: x"),
        (
            "Error: Could not create the Java Virtual Machine.\n",
            "Could not create the Java Virtual Machine.",
        ),
        ("\ntoo old\nline 97\n", "too old"),
        ("", "it says nothing"),
    ],
)
def test_a_start_that_fails_has_a_reason_and_nothing_is_written(
    said: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with suppress(KeyError), kept_back() as messages:
        _write(said)
        raise KeyError
    assert messages.reason() == reason
    assert capfd.readouterr().err == ""
