"""The table of the simulation's parameters in docs/simulation.md."""

import re
from pathlib import Path

from leader_hints_report.simulation.document import parameter_table

_BEGIN, _END = "<!-- parameters: written by make docs -->", "<!-- parameters: end -->"
_SECTION = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), re.DOTALL)


def page(file: Path) -> str:
    """Return the page with the table that the code has."""
    table = f"{_BEGIN}\n\n{parameter_table()}\n\n{_END}"
    return _SECTION.sub(lambda _: table, file.read_text(encoding="utf-8"))
