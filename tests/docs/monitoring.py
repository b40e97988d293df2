"""deploy/grafana and deploy/prometheus as data, and a real Prometheus that reads them."""

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness import processes
from tests.harness.maven import ROOT
from tests.harness.ports import free_ports
from tests.harness.waiting import until

DASHBOARD: Final = ROOT / "deploy" / "grafana" / "leader-hints.json"
PROMETHEUS: Final = ROOT / "deploy" / "prometheus"
RULES: Final = PROMETHEUS / "leader-hints.rules.yml"
RULES_TEST: Final = PROMETHEUS / "leader-hints.rules.test.yml"
#: What Grafana puts in place of its variables when all is chosen.
_VARIABLES: Final = {"__rate_interval": "10s", "__range": "1h"}
_CHOSEN: Final = ".*"


def tool(name: str) -> str:
    """The path of a program of Prometheus; skips the test without it, but never with CI=true."""
    found = shutil.which(name)
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"no {name}: install Debian's package prometheus")
    assert found is not None, f"no {name}"
    return found


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return loaded


def panel_queries() -> dict[str, str]:
    """Each query of a panel, by the panel's number, its title and the query's letter."""
    return {
        f"{panel['id']} {panel['title']} {target['refId']}": _filled(target["expr"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    }


def variable_queries() -> dict[str, tuple[str, str]]:
    """Each variable that is asked for: the series, and the label whose values it has."""
    found = {}
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert asked is not None, variable["definition"]
            found[variable["name"]] = (_filled(asked[1]), asked[2])
    return found


def rules() -> list[dict[str, Any]]:
    """All alert rules."""
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def _filled(query: str) -> str:
    return re.sub(r"\$(\w+)", lambda name: _VARIABLES.get(name[1], _CHOSEN), query)


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, query: str) -> list[float]:
        """The present values of an instant query."""
        result = self._get("query", {"query": query})["result"]
        return [float(series["value"][1]) for series in result]

    def label_values(self, series: str, label: str) -> list[str]:
        """The values that a label has in some series."""
        values: list[str] = self._get(f"label/{label}/values", {"match[]": series})
        return values

    def rule_health(self) -> dict[str, str]:
        """Each alert rule's health: ok once it was evaluated."""
        groups = self._get("rules", {})["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    def _get(self, path: str, parameters: dict[str, str]) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(targets: Sequence[str], folder: Path) -> Iterator[Prometheus]:
    """A server with the committed configuration, but for the targets and a second's pace."""
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [*targets]
    config["rule_files"] = [str(PROMETHEUS / file) for file in config["rule_files"]]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    server = processes.start(
        [
            *(tool("prometheus"), f"--config.file={file}", f"--web.listen-address={address}"),
            f"--storage.tsdb.path={folder / 'tsdb'}",
        ],
        output=folder / "prometheus.log",
    )
    try:
        until(lambda: server.poll() is not None or _ready(address), "Prometheus is ready")
        assert server.poll() is None, (folder / "prometheus.log").read_text(encoding="utf-8")
        yield Prometheus(f"http://{address}")
    finally:
        processes.end(server, 10)


def _ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    return subprocess.run(
        [tool("promtool"), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
