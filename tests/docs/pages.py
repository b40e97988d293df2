"""What is generated from the code: pages of docs/, the chart's schema.

Written by `python -m tests.docs.pages`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from leader_hints.observe.metric_families import FAMILIES
from leader_hints.observe.status import schema
from tests.docs import (
    chart_schema,
    events_page,
    journal_page,
    pytest_page,
    settings_page,
    simulation_page,
    upgrade_page,
)

DOCS = Path(__file__).parents[2] / "docs"

_HEAD = """\
# Metrics

These are the metrics at `/metrics` of the admin server. The Accept header selects Prometheus text
or OpenMetrics. Metrics of the process itself are there too, as `process_*`.

Client ids, links and secrets are never labels, and clients cannot create labels without bound.
Software names and versions are those that brokers accept (KIP-511): at most 20 versions of each
known client and 50 of all others. The rest is `other`.

[Troubleshooting](troubleshooting.md#why-an-error-got-no-hint) explains each `reason` of missed
hints. The `kind` of a fault is the name of its [log line](events.md). A dashboard and alert rules
are in `deploy/`: see [Operating](operating.md#dashboard-and-alerts).

| metric | type | labels | meaning |
|---|---|---|---|
"""

_TAIL = """
`make docs` generates this page from the code.
"""


def pages() -> Iterator[tuple[Path, str]]:
    """Iterate over each file and its text."""
    rows = (
        f"| `{family.full_name}` | {family.type} | "
        f"{', '.join(f'`{label}`' for label in family.labels)} | {family.text} |\n"
        for family in FAMILIES.values()
    )
    yield DOCS / "metrics.md", _HEAD + "".join(rows) + _TAIL
    yield DOCS / "configuration.md", settings_page.page()
    yield DOCS / "events.md", events_page.page()
    yield DOCS / "journal-events.md", journal_page.page()
    yield DOCS / "pytest.md", pytest_page.page()
    yield DOCS / "simulation.md", simulation_page.page(DOCS / "simulation.md")
    upgrade = DOCS / "deploy" / "kafka-4.md"
    yield upgrade, upgrade_page.page(upgrade)
    yield chart_schema.page()
    yield DOCS / "status.schema.json", json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    for file, text in pages():
        file.write_text(text, encoding="utf-8")
