"""What was found in the cells, kept as JSON so that runs add up."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.maven import BUILD

FOLDER = BUILD / "matrix"


@dataclass(frozen=True)
class Cell:
    """One client before one broker version.

    ``features``: by name an empty text, or what went wrong. ``versions``: by API those asked,
    each with the one that went to the broker if that is another. ``given``,
    ``missed``: hints, and by reason what got none. ``used``: sides on which hints were used.
    ``refused_offsets``: by error code how many partitions of ListOffsets answers.
    """

    broker: str
    client: str
    features: Mapping[str, str]
    versions: Mapping[str, list[str]]
    moves: int
    records: int
    given: int
    missed: Mapping[str, int]
    used: str
    refused_offsets: Mapping[str, int]
    passed_raw: Mapping[str, int]
    seconds: float

    @property
    def failures(self) -> dict[str, str]:
        """The features that failed, with what went wrong."""
        return {name: error for name, error in self.features.items() if error}

    def save(self) -> None:
        """Keep it."""
        file = _file(self.broker, self.client)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")


def load(broker: str, client: str) -> Cell | None:
    """The cell as it was last found, None where it was not yet."""
    file = _file(broker, client)
    if not file.exists():
        return None
    kept: dict[str, Any] = json.loads(file.read_text())
    return Cell(**kept)


def _file(broker: str, client: str) -> Path:
    return FOLDER / broker / f"{client}.json"
