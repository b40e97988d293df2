"""The SBOM: which packages the wheel runs with, in CycloneDX's JSON.

Versions are those of constraints.txt, with which the release was tested. What needs what is known
from the environment that this runs in.
"""

import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.errors import ReleaseError
from release.source import Source


def build_sbom(source: Source, out: Path) -> None:
    """Write the SBOM into ``out``. Packages of leader-hints-report alone are optional in it.

    :raises ReleaseError: a package that is needed is not pinned, or is not installed.
    """
    project, pins = source.project, _pins(source.folder / "constraints.txt")
    direct = project["dependencies"] + project["optional-dependencies"]["pipeline"]
    required, needs = _closure(project["dependencies"]), _closure(direct)
    unpinned = sorted(needs.keys() - pins.keys())
    if unpinned:
        raise ReleaseError(f"not in constraints.txt: {', '.join(unpinned)}")
    product = Component(
        name=project["name"],
        version=source.version,
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        purl=PackageURL("pypi", name=project["name"], version=source.version),
    )
    packages = {
        name: Component(
            name=name,
            version=pins[name],
            bom_ref=name,
            purl=PackageURL("pypi", name=name, version=pins[name]),
            scope=ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL,
        )
        for name in needs
    }
    sbom = Bom(components=packages.values())
    sbom.metadata.component = product
    sbom.metadata.timestamp = datetime.fromtimestamp(source.epoch, UTC)
    sbom.register_dependency(product, [packages[name] for name in _names(direct)])
    for name, others in needs.items():
        sbom.register_dependency(packages[name], [packages[other] for other in others])
    # The number would be drawn by chance: the same contents get the same one.
    sbom.serial_number = uuid.UUID(int=0)
    contents = JsonV1Dot6(sbom).output_as_string()
    sbom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, contents)
    text = JsonV1Dot6(sbom).output_as_string(indent=2)
    (out / f"{project['name']}-{source.version}.cdx.json").write_text(f"{text}\n", encoding="utf-8")


def _pins(constraints: Path) -> dict[str, str]:
    """Version by canonical name."""
    pinned = re.findall(r"^([\w.-]+)==(\S+)", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pinned}


def _closure(requirements: Iterable[str]) -> dict[str, list[str]]:
    """What is needed, directly or not, by canonical name: and what each of them needs."""
    needs: dict[str, list[str]] = {}
    todo = [Requirement(one) for one in requirements]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        others = [Requirement(one) for one in _requires(name)]
        extras = requirement.extras or {""}
        wanted = [
            one
            for one in others
            if one.marker is None or any(one.marker.evaluate({"extra": each}) for each in extras)
        ]
        found = sorted({canonicalize_name(one.name) for one in wanted} | set(needs.get(name, [])))
        if needs.get(name) != found:
            needs[name] = found
            todo += wanted
    return needs


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError as error:
        raise ReleaseError(f"{name} is not installed: make venv") from error


def _names(requirements: Iterable[str]) -> list[str]:
    return sorted({canonicalize_name(Requirement(one).name) for one in requirements})
