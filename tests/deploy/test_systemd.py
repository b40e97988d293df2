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


def _units(root: Path) -> Path:
    """A folder for units, below a root with all that systemd looks at: its own ones, and the
    commands.
    """
    units = root / "usr/lib/systemd/system"
    units.parent.mkdir(parents=True)
    shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
    for key in ("ExecStart", "ExecReload"):
        command = root / read()["Service"][key].split()[0].removeprefix("/")
        command.parent.mkdir(parents=True)
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
    return units


@pytest.mark.parametrize("broken", [False, True])
def test_systemd_understands_it(tmp_path: Path, broken: bool) -> None:
    need("systemd-analyze")
    units = _units(tmp_path)
    text = UNIT.read_text()
    (units / UNIT.name).write_text(text.replace("PrivateTmp=", "PrivatTmp=") if broken else text)

    done = run("systemd-analyze", "verify", f"--root={tmp_path}", UNIT.name, check=False)

    assert (UNIT.name in done.stdout + done.stderr) is broken


def test_systemd_understands_the_drop_in_for_takeovers(tmp_path: Path) -> None:
    need("systemd-analyze")
    units = _units(tmp_path)
    shutil.copy(UNIT, units)
    shutil.copytree(f"{UNIT}.d", units / f"{UNIT.name}.d")

    done = run("systemd-analyze", "verify", f"--root={tmp_path}", UNIT.name, check=False)

    assert UNIT.name not in done.stdout + done.stderr
    drop_in = configparser.RawConfigParser(strict=False)
    drop_in.optionxform = str  # type: ignore[assignment,method-assign]
    drop_in.read_string((UNIT.parent / f"{UNIT.name}.d" / "takeover.conf").read_text())
    service = drop_in["Service"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "all")
    assert service["ExecReload"].split()[1:] == ["-USR2", "$MAINPID"]
    assert (
        service["Environment"]
        == f"LEADER_HINTS_TAKEOVER=/run/{service['RuntimeDirectory']}/takeover"
    )


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
