"""What releases of Kafka take, by the message definitions that they bring."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping

import pytest

from leader_hints.apis.keys import api_name
from leader_hints.apis.oldest_versions import NEWEST_RELEASE, RELEASES
from tests.harness.maven import client_library

#: By the release of which they are tried; the ones before 3.7 are what brokers are upgraded from.
_TRIED = {
    "2.4.1": "",
    "2.8.2": "",
    "3.6.2": "",
    "3.7.2": "3.7",
    "3.9.1": "3.7",
    "4.0.1": "4.0",
    "4.1.1": "4.1",
    "4.2.0": "4.1",
    "4.3.0": "4.1",
}
#: Of brokers among themselves: no client asks them.
_AMONG_BROKERS = {"WriteTxnMarkers", "AlterPartition"}
_COMMENT = re.compile(r"(?<!:)//.*$", re.MULTILINE)


def _oldest(version: str) -> Iterator[tuple[int, int]]:
    """The oldest version of each request that a release takes."""
    jar = client_library(version).folder / "libs" / f"kafka-clients-{version}.jar"
    with zipfile.ZipFile(jar) as packed:
        for name in packed.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                text = packed.read(name).decode()
                definition = _first_object(_COMMENT.sub("", text))
                valid = str(definition["validVersions"])
                if valid != "none":
                    yield int(str(definition["apiKey"])), int(valid.partition("-")[0])


def _first_object(text: str) -> Mapping[str, object]:
    """Read a definition: one of 2.8 has a brace too many behind it."""
    found: Mapping[str, object]
    found, _ = json.JSONDecoder().raw_decode(text.strip())
    return found


@pytest.mark.parametrize("version", [*_TRIED])
def test_what_a_release_refuses_is_in_the_table(version: str) -> None:
    oldest = {
        key: at_least
        for key, at_least in _oldest(version)
        if at_least and api_name(key) not in _AMONG_BROKERS
    }
    assert oldest == RELEASES.get(_TRIED[version], {})


def test_the_newest_release_that_is_named_was_tried() -> None:
    assert [*_TRIED][-1].startswith(NEWEST_RELEASE)
    assert {*_TRIED.values()} - {""} == {*RELEASES}
