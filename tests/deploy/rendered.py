"""What kustomize and Helm make of the manifests, and a pod's part that is the proxy."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import run
from tests.harness.maven import ROOT

CONTAINER = "leader-hints"
_DEPLOY = ROOT / "deploy"
_OLDEST, _NEWEST = "1.29.0", "1.37.0"


@dataclass(frozen=True)
class Rendered:
    """The documents of one rendering."""

    text: str

    @property
    def documents(self) -> Sequence[dict[str, Any]]:
        """All documents."""
        return [found for found in yaml.safe_load_all(self.text) if found]

    def of(self, kind: str) -> Sequence[dict[str, Any]]:
        """The documents of one kind."""
        return [found for found in self.documents if found["kind"] == kind]

    @property
    def workload(self) -> dict[str, Any]:
        """The one DaemonSet or StatefulSet."""
        (found,) = (*self.of("DaemonSet"), *self.of("StatefulSet"))
        return found

    @property
    def pod(self) -> dict[str, Any]:
        """Its pod template."""
        template: dict[str, Any] = self.workload["spec"]["template"]
        return template

    @property
    def proxy(self) -> dict[str, Any]:
        """The container of the proxy, be it an init container or not."""
        spec = self.pod["spec"]
        every = (*(spec.get("initContainers") or ()), *spec["containers"])
        proxy: dict[str, Any]
        (proxy,) = (one for one in every if one["name"] == CONTAINER)
        return proxy

    def environment(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The proxy's variables; ``fields`` has what the downward API gives, by its path."""
        return {
            one["name"]: one["value"]
            if "value" in one
            else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in self.proxy["env"]
        }

    def mount(self, folder: Path) -> dict[str, Path]:
        """Write the proxy's volumes below ``folder``; returns the folders by their mount paths."""
        volumes = {one["name"]: one for one in self.pod["spec"]["volumes"]}
        maps = {one["metadata"]["name"]: one["data"] for one in self.of("ConfigMap")}
        mounted = {}
        for mount in self.proxy["volumeMounts"]:
            place = folder / mount["name"]
            place.mkdir(parents=True)
            for name, content in maps[volumes[mount["name"]]["configMap"]["name"]].items():
                (place / name).write_text(content)
            mounted[mount["mountPath"]] = place
        return mounted


def kustomized(folder: str) -> Rendered:
    """What kustomize builds of a folder of deploy/kubernetes."""
    return Rendered(run("kustomize", "build", _DEPLOY / "kubernetes" / folder).stdout)


def daemonset_chart(*values: str, files: Sequence[Path] = ()) -> Rendered:
    """What Helm makes of the chart, with ``values`` as in --set and ``files`` as in --values."""
    return _helm(_DEPLOY / "helm" / "leader-hints", values, files)


def brokers_chart(folder: Path, *values: str) -> Rendered:
    """What Helm makes of the example, a brokers' chart that takes the proxy into its pods.

    ``folder`` gets a copy of the charts, since Helm puts dependencies beside them.
    """
    if not folder.exists():
        shutil.copytree(_DEPLOY / "helm", folder)
        run("helm", "dependency", "update", folder / "example")
    return _helm(folder / "example", [f"leader-hints.{value}" for value in values])


def _helm(chart: Path, values: Sequence[str], files: Sequence[Path] = ()) -> Rendered:
    sets = [part for value in values for part in ("--set", value)]
    sets += [part for file in files for part in ("--values", str(file))]
    done = run("helm", "template", "hints", chart, "--kube-version", _OLDEST, *sets)
    return Rendered(done.stdout)


def validate(rendered: Rendered, folder: Path) -> None:
    """Hold it against the schemas of the oldest and the newest Kubernetes; nothing may be extra."""
    file = folder / "rendered.yaml"
    file.write_text(rendered.text)
    for version in (_OLDEST, _NEWEST):
        run("kubernetes-validate", "--strict", "--quiet", "-k", version.rpartition(".")[0], file)
