"""The list of mutants, and what each of them makes of the product's source."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_PRODUCT: Final = ROOT / "proxy" / "leader_hints"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted defect.

    ``does``: what is wrong with it. ``file``: below the product's package; there ``old`` is
    replaced by ``new``. ``fix``: the fixed defect that it brings back, "" for none; worlds alone
    must find such a one. ``worlds``: in so many worlds, from seed ``first`` on, a test finds it, 0:
    no test looks for it. ``equivalent``: why it changes nothing that matters, "" if it does.
    """

    name: str
    does: str
    file: str
    old: str
    new: str
    fix: str = ""
    worlds: int = 0
    first: int = 0
    equivalent: str = ""

    @property
    def path(self) -> Path:
        """The file that it changes."""
        return _PRODUCT / self.file

    @property
    def module(self) -> str:
        """The module that it changes."""
        return ".".join(("leader_hints", *Path(self.file).with_suffix("").parts))

    def source(self) -> str:
        """Return the file's text with the defect.

        :raises LookupError: the text to be replaced is not there, or more than once.
        """
        text = self.path.read_text()
        if text.count(self.old) != 1:
            times = text.count(self.old)
            raise LookupError(f"{self.name}: {self.file} has the old text {times} times, not once")
        return text.replace(self.old, self.new)


def _read() -> dict[str, Mutant]:
    rows = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())["mutant"]
    mutants = [Mutant(**row) for row in rows]
    by_name = {mutant.name: mutant for mutant in mutants}
    assert len(by_name) == len(mutants), "two mutants have the same name"
    return by_name


MUTANTS: Final = _read()
