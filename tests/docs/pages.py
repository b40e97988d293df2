"""What is made of the code: pages of docs/, the chart's schema. `python -m tests.docs.pages`."""

import json
from collections.abc import Iterator
from pathlib import Path

from leader_hints.observe.metrics import FAMILIES
from leader_hints.observe.status import schema
from tests.docs import chart_schema, events_page, journal_page, settings_page

DOCS = Path(__file__).parents[2] / "docs"

_HEAD = """\
# Metrics

What `/metrics` of the admin server has, as text for Prometheus or as OpenMetrics, by what the
Accept header asks for. The process itself is there too, as `process_*`.

No client id, link or secret is ever a label, and no client can make labels without bound: software
names and versions are those that brokers take (KIP-511), as many as 20 versions of each known
client and 50 of all others; the rest is `other`.

`reason` of hints that were missed is explained in
[Troubleshooting](troubleshooting.md#why-an-error-got-no-hint). The `kind` of a fault is the name of
its [log line](events.md). A dashboard and alert rules are in `deploy/`: see
[Operating](operating.md#dashboard-and-alerts).

| metric | type | labels | meaning |
|---|---|---|---|
"""

_TAIL = """
`make docs` makes this page of the code.
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
    yield chart_schema.page()
    yield DOCS / "status.schema.json", json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    for file, text in pages():
        file.write_text(text, encoding="utf-8")
