"""Where settings come from: command line above environment above a YAML file above defaults.

Each place gives a `Layer`. A text in the environment is read by the same rules as one in the file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

import yaml
from pydantic import ValidationError

from leader_hints.cli.refusals import (
    Path,
    key_text,
    may_hold_secret,
    origin_of,
    refusals,
    shown,
)
from leader_hints.cli.templates import expand
from leader_hints.errors import ConfigurationError
from leader_hints.settings.settings import Settings

_PREFIX: Final = "LEADER_HINTS_"
_DELIMITER: Final = "__"
_TOO_DEEP: Final = "groups and lists are nested too deeply; settings have at most three levels"
_LISTS: Final = frozenset({"routes", "clients"})
CONFIG_VARIABLE: Final = f"{_PREFIX}CONFIG"  # names the file; it is no setting itself

# For a Service whose name begins with "leader-hints", Kubernetes puts these into the environment of
# every pod of the namespace, and Docker's links do the same. They are no settings.
_SERVICE_LINK: Final = re.compile(
    r"LEADER_HINTS_(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT(_\d+_[A-Z]+(_[A-Z]+)?)?)"
)


#: In the library's words: a value that begins with * or !, say, which may be a secret. Tokens, such
#: as '<scalar>', and single characters are none.
_QUOTED: Final = re.compile(r"""'(?!<[a-z ]+>')[^']{2,}'|"[^"]{2,}\"""")


@dataclass
class Layer:
    """Settings from one place.

    Attributes:
        values: nested, as the settings' model takes them.
        origins: for each path that is set, words for the place, such as `--hints`.
        problems: what could not be read at all, one line each.
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def put(self, path: Path, value: Any, origin: str) -> None:
        """Set a value. Where something above the path is no group, that stays, to be refused."""
        group: Any = self.values
        for part in path[:-1]:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                return
        group[path[-1]] = value
        self.origins[path] = origin

    def put_routes(self, texts: Sequence[str], origin: str) -> None:
        """Set the routes from texts of the form LISTEN=UPSTREAM."""
        routes = []
        hidden = any(map(may_hold_secret, texts))
        for text in texts:
            listen, equals, upstream = (part.strip() for part in text.partition("="))
            if equals:
                routes.append({"listen": listen, "upstream": upstream})
            else:
                self.problems.append(
                    f"{origin}: {shown(text, hidden=hidden)} is no route; allowed: LISTEN=UPSTREAM"
                )
        self.put(("routes",), routes, origin)


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: FilePath | None
) -> Settings:
    """Gather the settings from all places.

    Args:
        flags: from the command line: `routes` as a sequence of LISTEN=UPSTREAM, all others by their
            key, such as `log.level`. None, and empty routes, count as not given.
        environment: the process's environment variables.
        file: a YAML file, or None.

    Raises:
        ConfigurationError: something is not allowed; it lists every problem that was found.
    """
    layers = [flag_layer(flags), environment_layer(environment)]
    if file is not None:
        layers.append(file_layer(file))
    problems = [problem for layer in layers for problem in layer.problems]
    if problems:
        raise ConfigurationError(*problems)
    merged = Layer()
    for layer in reversed(layers):
        merged.values = _merge(merged.values, layer.values)
        # Lists are taken whole: origins of former members are void.
        whole = _LISTS & layer.values.keys()
        merged.origins = {at: by for at, by in merged.origins.items() if at[0] not in whole}
        merged.origins |= layer.origins
    _expand(merged, environment)
    if merged.problems:
        raise ConfigurationError(*merged.problems)
    try:
        return Settings(**merged.values)
    except ValidationError as error:
        raise ConfigurationError(*refusals(error, merged.origins)) from None


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    """The command line's layer; see `load_settings` for the form of the flags."""
    layer = Layer()
    for key, value in flags.items():
        if key == "routes":
            if value:
                layer.put_routes(value, "--route")
        elif value is not None:
            layer.put(tuple(key.split(".")), value, f"--{key.replace('.', '-')}")
    return layer


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """The layer of the variables LEADER_HINTS_...; an empty one counts as not set."""
    layer = Layer()
    for name in sorted(environment):
        if environment[name] == "" or not _is_setting(name):
            continue
        origin, path = f"environment variable {name}", _path_of(name)
        if path == ("routes",) and not environment[name].rstrip().endswith("]"):
            # A list of LISTEN=UPSTREAM may begin with the bracket of an IPv6 address, but ends
            # with a port.
            layer.put_routes(environment[name].split(","), origin)
        elif path[0] in _LISTS and len(path) == 1:
            _put_environment_list(layer, path, environment[name], origin)
        else:
            layer.put(path, _read_scalar(environment[name]), origin)
    return layer


def file_layer(file: FilePath) -> Layer:
    """The layer of a YAML file. Its origins name the lines."""
    layer = Layer()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        layer.problems.append(f"cannot read {file}: {reason}")
        return layer
    try:
        _read_document(layer, text, file)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        # The library raises what Python's own readers of numbers, dates and truth values raise.
        layer.problems.append(f"{file}{yaml_problem(error)}")
    except RecursionError:
        layer.problems.append(f"{file}: {_TOO_DEEP}")
    return layer


def _is_setting(name: str) -> bool:
    return (
        name.startswith(_PREFIX) and name != CONFIG_VARIABLE and not _SERVICE_LINK.fullmatch(name)
    )


def _path_of(variable: str) -> Path:
    return tuple(variable.removeprefix(_PREFIX).lower().split(_DELIMITER))


def _put_environment_list(layer: Layer, path: Path, text: str, origin: str) -> None:
    try:
        layer.put(path, json.loads(text), origin)
    except ValueError as error:
        said = shown(text, hidden=may_hold_secret(text))
        layer.problems.append(f"{origin}: {said} is no JSON list: {error}")
    except RecursionError:
        layer.problems.append(f"{origin}: {_TOO_DEEP}")


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Groups are merged key by key; anything else, lists too, is taken from above whole."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _expand(layer: Layer, environment: Mapping[str, str]) -> None:
    """Put the environment's values into the templates of addresses and names."""
    for group, at, key in _templates(layer.values):
        path, text = (*at, key), group[key]
        try:
            group[key] = expand(text, environment)
        except ValueError as error:
            place = origin_of(path, layer.origins)
            layer.problems.append(f"{place}: {key_text(path)} is {shown(text)}; {error}")


def _templates(values: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Path, str]]:
    """Each text with a `$` where one may stand: its group, that group's path, and its key."""
    routes = values.get("routes")
    groups: list[tuple[Any, Path]] = [(values, ())]
    if isinstance(routes, list):
        groups += [(route, ("routes", position)) for position, route in enumerate(routes)]
    for group, at in groups:
        for key in ("name", "listen", "upstream") if at else ("admin",):
            text = group.get(key) if isinstance(group, dict) else None
            if isinstance(text, str) and "$" in text:
                yield group, at, key


class _Loader(yaml.SafeLoader):
    """Plain values as YAML 1.2 reads them: `on` is a text and no truth value, a date is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


def _read_scalar(text: str) -> Any:
    """A single value as it would be read in the file; text that YAML does not take stays text."""
    loader = _Loader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    node = yaml.ScalarNode(tag, text)
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError):
        return text


def _read_document(layer: Layer, text: str, file: FilePath) -> None:
    loader = _Loader(text)
    root = loader.get_single_node()
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return
    if not isinstance(root, yaml.MappingNode):
        layer.problems.append(f"{file}: it must hold keys with values at the top")
        return
    for path, key in _key_nodes(root, (), set()):
        origin = f"{file}, line {key.start_mark.line + 1}"
        if not isinstance(path[-1], str):
            layer.problems.append(f"{origin}: unknown key {shown(path[-1])}; keys are words")
        elif path in layer.origins:
            layer.problems.append(f"{origin}: {key_text(path)} stands twice")
        layer.origins[path] = origin
    if not layer.problems:
        layer.values = loader.construct_document(root)


def _key_nodes(
    node: yaml.Node, path: tuple[Any, ...], seen: set[int]
) -> Iterator[tuple[tuple[Any, ...], yaml.Node]]:
    """Each key below a node with its path. A node that aliases repeat is entered once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, _read_key(key))
            yield here, key
            yield from _key_nodes(value, here, seen)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            yield from _key_nodes(value, (*path, position), seen)


def _read_key(key: yaml.Node) -> Any:
    is_text = key.tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
    if is_text:
        return key.value
    value = _read_scalar(str(key.value))
    # One of a text with another tag, such as !!binary, is no text.
    return value.encode() if isinstance(value, str) and isinstance(key, yaml.ScalarNode) else value


def yaml_problem(error: Exception) -> str:
    """Where and why a document is no YAML, in one line."""
    mark = getattr(error, "problem_mark", None)
    place = f", line {mark.line + 1}" if mark is not None else ""
    if isinstance(error, yaml.YAMLError):
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        reason = _QUOTED.sub("***", reason)
    else:
        # Such errors say nothing but the value, which may be a secret.
        reason = "a value is not of its type, or too long"
    return f"{place}: no valid YAML: {reason} (a value that begins with [ or * needs quotes)"
