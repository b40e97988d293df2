"""docs/configuration.md: every setting, from the JSON schema of the settings."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from leader_hints.settings.settings import Settings

HEAD: Final = """\
# Configuration

All settings can be in a YAML file (`--config FILE`) or in environment variables. The most used are
also flags. Flags win over variables, and variables win over the file.

- [leader-hints.yaml](../config/leader-hints.yaml) is an example with every setting and its default.
- `leader-hints config check --config FILE` prints the settings in force, and reports all that `run`
  would refuse: TLS files and their match, secrets, the journal's folder, addresses in use. Use
  `--skip ports` while the proxy runs, and `--skip files` too on another machine.
- `leader-hints config schema` prints the JSON schema, for editors.
- `LEADER_HINTS_CONFIG` names the file, if no flag does.

Unknown keys are refused, in the file and in the environment. Units are in the names: `_ms` are
milliseconds, `_bytes` are bytes.

| flag | setting |
|---|---|
| `--route LISTEN=UPSTREAM`, once for each broker | `routes` |
| `--hints on`, `observe` or `off` | `hints` |
| `--admin HOST:PORT` | `admin` |
| `--log-level LEVEL` | `log.level` |
| `--log-format FORMAT` | `log.format` |

"""
TAIL: Final = "`make docs` generates this page from the settings' schema.\n"

_PREFIX: Final = "LEADER_HINTS_"
_SCHEMA: Final = Settings.model_json_schema()

Node = dict[str, Any]


class Group(NamedTuple):
    """A group's path (empty: the top), what it is for, and its settings by name."""

    path: str
    meaning: str
    settings: dict[str, Node]
    required: frozenset[str]


def page() -> str:
    """The page's text."""
    return HEAD + "".join(_section(group) for group in groups()) + TAIL


def groups() -> Iterator[Group]:
    """Iterate over all groups of settings, outer ones first."""
    yield from _groups("", _SCHEMA)


def _groups(path: str, model: Node) -> Iterator[Group]:
    own, inner = {}, []
    for name, node in model["properties"].items():
        below = _model_of(node)
        if below is None or "description" in node:
            own[name] = node
        if below is not None:
            many = "[]" if node.get("type") == "array" else ""
            inner.append((f"{path}.{name}{many}".lstrip("."), below))
    yield Group(path, model.get("description", ""), own, frozenset(model.get("required", ())))
    for at, below in inner:
        yield from _groups(at, below)


def _model_of(node: Node) -> Node | None:
    """The model that a setting consists of, or that each of its members does."""
    for part in (node, node.get("items", {}), *node.get("anyOf", ())):
        if "$ref" in part:
            found: Node = _SCHEMA["$defs"][part["$ref"].rpartition("/")[2]]
            return found if "properties" in found else None
    return None


def _section(group: Group) -> str:
    head = f"## {group.path}\n\n{group.meaning}\n\n" if group.path else "## Top level\n\n"
    return head + "".join(_entry(group, name, node) for name, node in group.settings.items())


def _entry(group: Group, name: str, node: Node) -> str:
    path = f"{group.path}.{name}".lstrip(".")
    facts = [_values(node)]
    if "default" in node:
        facts.append(f"default `{json.dumps(node['default'])}`")
    elif name in group.required:
        facts.append("must be set")
    if "[]" not in path:
        facts.append(f"variable `{_PREFIX}{path.replace('.', '__').upper()}`")
    return f"### {path}\n\n*{'; '.join(facts)}*\n\n{node.get('description', '')}\n\n"


def _values(node: Node) -> str:
    """What may be written, in words."""
    if "$ref" in node:
        target = _SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
        return "a group" if "properties" in target else _values(target)
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    if "anyOf" in node:
        return " or ".join(_values(part) for part in node["anyOf"])
    match node.get("type"):
        case "integer" | "number" as kind:
            low, high = node.get("minimum"), node.get("maximum")
            word = "whole number" if kind == "integer" else "number"
            return word if low is None or high is None else f"{word}, {low} to {high}"
        case "boolean":
            return "`true` or `false`"
        case "null":
            return "`null`"
        case "array":
            return f"list of: {_values(node['items'])}"
        case _:
            return "text"
