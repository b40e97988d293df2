import importlib
import pkgutil

from kio.schema.index import api_key_map

from leader_hints.apis.keys import NAMES, NEWEST, ApiKey, api_name


def test_names_are_kafkas() -> None:
    for key, name in api_key_map.items():
        if key in NAMES and name != "list_config_resources":
            assert NAMES[key].lower() == name.replace("_", "")


def test_no_version_is_left_out() -> None:
    for key, name in api_key_map.items():
        if key in NAMES:
            found = pkgutil.iter_modules(importlib.import_module(f"kio.schema.{name}").__path__)
            versions = [int(one.name.removeprefix("v")) for one in found if one.ispkg]
            assert NEWEST[key] >= max(versions)


def test_keys_are_those_of_the_schemas() -> None:
    for key in ApiKey:
        assert key.name.lower() == api_key_map[key]


def test_a_key_that_is_not_known_has_a_common_name() -> None:
    assert {api_name(key) for key in (-1, 10_000, 32_767)} == {"other"}
