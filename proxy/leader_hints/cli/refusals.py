"""Refusals: why settings are not taken, one line for each problem.

A line names the place that the value came from, the key, the value, and what is allowed.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from leader_hints.settings.settings import Settings

Path = tuple[str | int, ...]  # of a setting, such as ("hold", "deadline_ms") or ("routes", 0)

_MOST_SHOWN: Final = 80
_HIDDEN: Final = "***"
#: In keys, and in texts that may have keys, whose values may be secrets. An operator may put one at
#: the wrong place, where no rule knows that it is one.
_BEFORE_SECRETS: Final = re.compile(r"pass|pw|token|secret|credential|sasl|key", re.IGNORECASE)
#: In a text that stands where a group of settings is meant, such as JSON in the environment. What a
#: colon and only digits end is an address.
_GIVES_SECRET: Final = re.compile(
    rf"(?:{_BEFORE_SECRETS.pattern})[^\s:=]{{0,80}}\s*(?:=|:(?!\d+$))", re.IGNORECASE
)
_FOLLOWS_FROM_ANOTHER: Final = "default_factory_not_called"  # a default that needs a refused value


def refusals(
    error: ValidationError, origins: Mapping[Path, str], model: type[BaseModel] = Settings
) -> tuple[str, ...]:
    """The lines for all that `error` found.

    Args:
        error: what the model refused.
        origins: for each path that was set, words for the place that set it.
        model: that of the settings.
    """
    schema = model.model_json_schema()
    details = error.errors(include_url=False)
    return tuple(
        _refusal(detail, schema, origin_of(detail["loc"], origins))
        for detail in details
        if detail["type"] != _FOLLOWS_FROM_ANOTHER and not _is_above_another(detail, details)
    )


def shown(value: Any, *, hidden: bool = False) -> str:
    """A value as text in one short line; control characters are escaped.

    Not a group or list with a key whose value may be a secret, be it in a text, and nothing that is
    ``hidden``.
    """
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):
        text = _shown_otherwise(value)
    if hidden or (isinstance(value, dict | list) and may_hold_secret(text)):
        return _HIDDEN
    if isinstance(value, str) and _GIVES_SECRET.search(value):
        return _HIDDEN
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def may_hold_secret(text: str) -> bool:
    """Whether a text, such as a key or one with keys in it, says that a secret is near."""
    return _BEFORE_SECRETS.search(text) is not None


def _shown_otherwise(value: Any) -> str:
    """What is no JSON: a list in a YAML file can hold itself, or be thousands of lists deep, and
    Python turns no number of more than 4300 digits into text."""
    try:
        return json.dumps(str(value))
    except (ValueError, RecursionError):
        return f"too large to show ({type(value).__name__})"


def key_text(path: Path) -> str:
    """A path as people write it: `hold.deadline_ms`, `routes[0].listen`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_plain(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def origin_of(path: Path, origins: Mapping[Path, str]) -> str | None:
    """The place that set the path or the nearest thing above it, else the places of what is below.

    None for the settings as a whole: no single place made them.
    """
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    below = [place for at, place in origins.items() if path and at[: len(path)] == path]
    return " and ".join(below) or None


def _plain(part: str) -> str:
    return part if part.isidentifier() and part.isascii() else shown(part)


def _is_above_another(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """A list counts as too short when its only member was refused; the member's line is enough."""
    path = detail["loc"]
    return any(len(d["loc"]) > len(path) and d["loc"][: len(path)] == path for d in details)


def _refusal(detail: ErrorDetails, schema: dict[str, Any], origin: str | None) -> str:
    path, kind = detail["loc"], detail["type"]
    if kind == "missing" and path == ("routes",):
        return (
            "no route: give --route LISTEN=UPSTREAM, the environment variable LEADER_HINTS_ROUTES, "
            "or routes in the configuration file"
        )
    place = f"{origin}: " if origin else ""
    if kind == "missing":
        return f"{place}{key_text(path)} is missing: {_node(schema, path)['description']}"
    if kind == "extra_forbidden":
        beside_secrets = _is_beside_secrets(schema, path)
        named = any(may_hold_secret(part) for part in path if isinstance(part, str))
        value = shown(detail["input"], hidden=beside_secrets or named)
        name = key_text(path)
        if beside_secrets and detail["input"] is None:
            # Behind the comma of a secret without quotes begins a key: {password: file:a,b}
            name = f"{key_text(path[:-1])}.{_HIDDEN}"
        return f"{place}unknown key {name} (value {value}){_advice(path, schema)}"
    if kind == "value_error" and _takes_keys(schema, path):
        return f"{place}{_group(path)}{detail['ctx']['error']}"
    if _is_secret(_node(schema, path)):
        return f"{place}{key_text(path)} is {_HIDDEN}; allowed: file:PATH or env:NAME"
    # A secret may stand in place of the group that it belongs to.
    secrets = any(map(_is_secret, _values(schema, path)))
    line = f"{place}{key_text(path)} is {shown(detail['input'], hidden=secrets)}; "
    if kind == "value_error":
        return f"{line}{detail['ctx']['error']}"
    return f"{line}allowed: {_allowed(schema, path)}"


def _is_secret(node: dict[str, Any]) -> bool:
    """Whether people may write a secret there, though only where one is found is allowed."""
    return bool(node.get("writeOnly"))


def _is_beside_secrets(schema: dict[str, Any], path: Path) -> bool:
    """Whether an unknown key may be meant for a secret of its group.

    At the top, where the key of one secret is among many others, only if it is like that one.
    """
    keys = _node(schema, path[:-1]).get("properties", {})
    secrets = [name for name, node in keys.items() if _is_secret(_resolved(schema, node))]
    if len(path) > 1 or not secrets:
        return bool(secrets)
    return bool(difflib.get_close_matches(str(path[-1]), secrets, n=1))


def _values(schema: dict[str, Any], above: Path) -> list[dict[str, Any]]:
    """The schema of each key of a group."""
    return [*_node(schema, above).get("properties", {}).values()]


def _group(path: Path) -> str:
    return f"{key_text(path)}: " if path else ""


def _advice(path: Path, schema: dict[str, Any]) -> str:
    """The known key that was perhaps meant, else the keys that may stand there."""
    keys = dict(_keys(schema, ()))
    same_last = [key for key, known in keys.items() if known[-1] == path[-1]]
    wanted = ".".join(str(part) for part in path if not isinstance(part, int))
    near = same_last or difflib.get_close_matches(wanted, keys, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; allowed: {_allowed(schema, path[:-1])}"


def _keys(schema: dict[str, Any], above: Path) -> Iterator[tuple[str, Path]]:
    """Every key below `above`, as text without list positions and as path."""
    for name, node in _node(schema, above).get("properties", {}).items():
        path = (*above, name)
        yield ".".join(str(part) for part in path if not isinstance(part, int)), path
        yield from _keys(schema, (*path, 0) if node.get("type") == "array" else path)


def _node(schema: dict[str, Any], path: Path) -> dict[str, Any]:
    """The part of the JSON schema that describes a path; empty for a path that it does not know."""
    node: dict[str, Any] = schema
    for part in path:
        node = _resolved(schema, node)
        node = node.get("items", {}) if isinstance(part, int) else _property(node, part)
    return _resolved(schema, node)


def _property(node: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = node.get("properties", {}).get(name, {})
    return found


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: dict[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return found


def _takes_keys(schema: dict[str, Any], path: Path) -> bool:
    return "properties" in _node(schema, path)


def _allowed(schema: dict[str, Any], path: Path) -> str:
    """Words for what may stand at a path, from its JSON schema."""
    node = _node(schema, path)
    if "enum" in node:
        return ", ".join(node["enum"])
    if node.get("type") == "integer":
        return f"a whole number from {node['minimum']} to {node['maximum']}"
    if node.get("type") == "boolean":
        return "true or false"
    if "properties" in node:
        return f"the keys {', '.join(node['properties'])}"
    if node.get("type") == "array":
        most = "a list" if not node.get("minItems") else "a list of at least one"
        return f"{most}, each with {_allowed(schema, (*path, 0))}"
    return f"text of the form {node['pattern']}"
