"""The tables of the simulation's parameters and of its clients in docs/simulation.md."""

from pathlib import Path

from bench.report import with_section
from leader_hints_report.simulation.document import client_table, parameter_table

_TABLES = {"parameters": parameter_table, "clients": client_table}


def page(file: Path) -> str:
    """Return the page with the tables that the code has."""
    text = file.read_text(encoding="utf-8")
    for name, table in _TABLES.items():
        text = with_section(file, text, name, table(), "make docs")
    return text
