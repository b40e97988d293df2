"""The tables of an output folder as another reader than Spark sees them."""

from pathlib import Path

import duckdb

from leader_hints_report.tables.columns import TABLES


def rows_of(out: Path | str) -> dict[str, list[str]]:
    """The rows of all tables, as text, in an order of their own."""
    database = duckdb.connect()
    told = {}
    for name in TABLES:
        found = sorted((Path(out) / "tables" / name).glob("day=*/cluster=*/*.parquet"))
        files = [str(file) for file in found]
        # As text: DuckDB gives instants to Python only with one more package.
        read = "SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?, hive_partitioning = true)"
        rows = database.execute(read, [files]).fetchall() if files else []
        told[name] = sorted(map(str, rows))
    return told
