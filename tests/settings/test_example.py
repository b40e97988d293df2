"""config/leader-hints.yaml: valid by the JSON schema, complete, and its values are the defaults."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from leader_hints.address import Address
from leader_hints.cli.sources import file_layer, load_settings
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "config" / "leader-hints.yaml"
SCHEMA = Settings.model_json_schema()


def _read() -> dict[str, Any]:
    layer = file_layer(EXAMPLE)
    assert layer.problems == []
    return layer.values


def _groups(node: dict[str, Any], values: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
    """Each group of keys in the schema, with its part of the example."""
    node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    if node.get("type") == "array" and values:
        yield from _groups(node["items"], values[0], f"{at}[0]")
    for name, child in node.get("properties", {}).items():
        yield from _groups(child, values[name], f"{at}.{name}")
    if "properties" in node:
        yield at, node["properties"], values


def test_it_is_valid_by_the_schema() -> None:
    jsonschema.validate(_read(), SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_refuses_an_unknown_key() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**_read(), "hintz": "on"}, SCHEMA)


def test_it_has_every_key_of_the_schema() -> None:
    groups = list(_groups(SCHEMA, _read(), ""))

    assert {at for at, _, _ in groups} == {
        "",
        ".routes[0]",
        ".routes[0].client_tls",
        ".routes[0].upstream_tls",
        ".routes[0].peer_tls",
        ".routes[0].sasl",
        ".limits",
        ".hold",
        ".subscription",
        ".log",
        ".journal",
        ".log.levels",
        ".metrics",
    }
    for at, known, values in groups:
        assert set(values) == set(known), at


def test_each_key_has_a_description() -> None:
    for at, known, _ in _groups(SCHEMA, _read(), ""):
        for name, node in known.items():
            assert node.get("description") or "$ref" in node, f"{at}.{name}"


def test_its_values_are_the_defaults() -> None:
    settings = load_settings({}, {}, EXAMPLE)

    assert settings == Settings(routes=settings.routes)
    assert settings.routes == (
        RouteSettings(
            name="broker-1",
            listen=Address("127.0.0.1", 19092),
            upstream=Address("127.0.0.1", 9092),
        ),
    )


def test_each_key_has_a_comment_above_it() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    for above, line in itertools.pairwise(lines):
        text = line.strip()
        if text and not text.startswith(("#", "- #")):
            assert above.strip().startswith(("#", "- #")), line
