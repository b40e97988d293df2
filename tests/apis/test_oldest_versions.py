"""The oldest versions that brokers of 4.1 take, held against Kafka's own message definitions."""

import importlib
import pkgutil
import re

import kio.schema

from leader_hints.apis.keys import NAMES, api_name
from leader_hints.apis.oldest_versions import OLDEST_IN_4_1

#: Of brokers among themselves: no client asks them.
_AMONG_BROKERS = {"WriteTxnMarkers", "AlterPartition"}


def _oldest_of_kio() -> dict[int, int]:
    """The oldest version of each API that kio has, which follows Kafka 4.1 and newer."""
    oldest = {}
    for module in pkgutil.iter_modules(kio.schema.__path__):
        package = importlib.import_module(f"kio.schema.{module.name}")
        names = [of.name for of in pkgutil.iter_modules(getattr(package, "__path__", []))]
        versions = sorted(int(name[1:]) for name in names if re.fullmatch(r"v\d+", name))
        if not versions:
            continue
        try:
            of = importlib.import_module(f"kio.schema.{module.name}.v{versions[0]}.request")
        except ModuleNotFoundError:
            continue  # it is no request
        keys = [c.__api_key__ for c in vars(of).values() if hasattr(c, "__api_key__")]
        oldest[int(keys[0])] = versions[0]
    return oldest


def test_the_table_is_kafkas() -> None:
    of_kio = {key: oldest for key, oldest in _oldest_of_kio().items() if key in NAMES}
    assert len(of_kio) > 60
    assert {
        api_name(key): oldest
        for key, oldest in of_kio.items()
        if oldest and api_name(key) not in _AMONG_BROKERS
    } == {api_name(key): oldest for key, oldest in OLDEST_IN_4_1.items()}
