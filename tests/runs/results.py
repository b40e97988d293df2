"""What came of the runs, kept as JSON so that they add up.

A file for each run, a line for each place: they are committed, so that the page can be made again
and a run can be done alone.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """``broker``: as the matrix names it; ``direct``: past all proxies. ``failure``: empty, or what
    went wrong; then there are no figures.
    """

    run: str
    broker: str
    direct: bool
    moves: int
    figures: Mapping[str, int]
    failure: str
    seconds: float

    def save(self, folder: Path = FOLDER) -> None:
        """Keep it in place of what was found there before."""
        here = (self.broker, self.direct)
        found = {(one.broker, one.direct): one for one in load(self.run, folder)} | {here: self}
        lines = [json.dumps(dataclasses.asdict(one)) + "\n" for _, one in sorted(found.items())]
        folder.mkdir(exist_ok=True)
        _file(self.run, folder).write_text("".join(lines))


def load(run: str, folder: Path = FOLDER) -> list[Result]:
    """The results of a run by broker, as they were last found."""
    file = _file(run, folder)
    if not file.exists():
        return []
    return [Result(**json.loads(line)) for line in file.read_text().splitlines()]


def _file(run: str, folder: Path) -> Path:
    return folder / f"{run}.jsonl"
