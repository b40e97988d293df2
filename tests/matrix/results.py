"""What was found in the cells, kept as JSON so that runs add up.

A file for each broker version, a line for each client: they are committed, so that the page can be
made again and a row can be run alone.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cells"


@dataclass(frozen=True)
class Cell:
    """One client before one broker version.

    ``features``: by name an empty text, or what went wrong. ``versions``: by API those asked,
    each with the one that went to the broker if that is another. ``given``,
    ``missed``: hints, and by reason what got none; ``waited``: what came of errors that wait for
    settled Metadata. ``used``: sides on which hints were used.
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
    waited: Mapping[str, int]
    used: str
    refused_offsets: Mapping[str, int]
    passed_raw: Mapping[str, int]
    seconds: float

    @property
    def failures(self) -> dict[str, str]:
        """The features that failed, with what went wrong."""
        return {name: error for name, error in self.features.items() if error}

    def save(self, folder: Path = FOLDER) -> None:
        """Keep it in place of what was found there before."""
        cells = load(self.broker, folder) | {self.client: self}
        lines = [json.dumps(dataclasses.asdict(cell)) + "\n" for _, cell in sorted(cells.items())]
        folder.mkdir(exist_ok=True)
        _file(self.broker, folder).write_text("".join(lines))


def load(broker: str, folder: Path = FOLDER) -> dict[str, Cell]:
    """The cells of a broker version by client, as they were last found."""
    file = _file(broker, folder)
    if not file.exists():
        return {}
    cells = (Cell(**json.loads(line)) for line in file.read_text().splitlines())
    return {cell.client: cell for cell in cells}


def _file(broker: str, folder: Path) -> Path:
    return folder / f"{broker}.jsonl"
