"""The unit for plain hosts: understood by systemd, hardened, in the right order with brokers."""

import configparser
import shutil
from pathlib import Path

import pytest

from leader_hints.cli.sources import load_settings
from leader_hints.errors import ConfigurationError
from tests.deploy.tools import need, run
from tests.harness.maven import ROOT

UNIT = ROOT / "deploy" / "systemd" / "leader-hints.service"
_MOST_EXPOSED = 20
"""Of 100, as systemd-analyze counts; a service without any protection has 96."""


def read() -> configparser.RawConfigParser:
    """The unit; of what stands several times the last."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    return unit


@pytest.mark.parametrize("broken", [False, True])
def test_systemd_understands_it(tmp_path: Path, broken: bool) -> None:
    need("systemd-analyze")
    # Its own units are looked at too, so they must be there; the command as well.
    units = tmp_path / "usr/lib/systemd/system"
    units.parent.mkdir(parents=True)
    shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
    text = UNIT.read_text()
    (units / UNIT.name).write_text(text.replace("PrivateTmp=", "PrivatTmp=") if broken else text)
    for key in ("ExecStart", "ExecReload"):
        command = tmp_path / read()["Service"][key].split()[0].removeprefix("/")
        command.parent.mkdir(parents=True)
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)

    done = run("systemd-analyze", "verify", f"--root={tmp_path}", UNIT.name, check=False)

    assert (UNIT.name in done.stdout + done.stderr) is broken


def test_systemd_finds_little_to_harden() -> None:
    need("systemd-analyze")
    run("systemd-analyze", "security", "--offline=true", f"--threshold={_MOST_EXPOSED}", UNIT)


def test_it_stops_after_the_broker_and_has_time_for_it() -> None:
    unit = read()
    assert "kafka.service" in unit["Unit"]["Before"].split()
    assert int(unit["Service"]["TimeoutStopSec"]) >= 60


def test_a_reload_has_the_tls_files_read_again() -> None:
    command, number, process = read()["Service"]["ExecReload"].split()
    assert (Path(command).name, number, process) == ("kill", "-HUP", "$MAINPID")


def test_a_refused_configuration_is_not_tried_again() -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, {}, None)
    assert read()["Service"]["RestartPreventExitStatus"] == str(refused.value.exit_code)
