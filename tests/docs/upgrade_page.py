"""The table of refused versions in docs/deploy/kafka-4.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.report import with_section
from leader_hints.apis.keys import api_name
from leader_hints.apis.oldest_versions import NEWEST_RELEASE, OLDEST_IN_4_0, RELEASES

#: A release of Kafka whose sources have what is refused from one on.
_TAGS: Final = {"4.0": "4.0.1", "4.1": "4.1.1"}
_SOURCE: Final = (
    "https://github.com/apache/kafka/blob/{tag}/clients/src/main/resources/common/message/"
    "{name}Request.json"
)


def page(file: Path) -> str:
    """Return the page with the table that the code has."""
    return with_section(file, file.read_text("utf-8"), "refused", "\n".join(_rows()), "make docs")


def _rows() -> Iterator[str]:
    newest = [*RELEASES][-1]
    yield f"| request | up to 3.9 | 4.0 | {newest} to {NEWEST_RELEASE} | source |"
    yield "|---|---|---|---|---|"
    for key, oldest in RELEASES[newest].items():
        name = api_name(key)
        tag = _TAGS["4.0" if key in OLDEST_IN_4_0 else newest]
        in_4_0 = OLDEST_IN_4_0.get(key, 0)
        source = _SOURCE.format(tag=tag, name=name)
        yield f"| {name} | all | {_from(in_4_0)} | {_from(oldest)} | [{tag}]({source}) |"


def _from(oldest: int) -> str:
    return f"from {oldest} on" if oldest else "all"
