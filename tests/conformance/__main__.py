"""Writes docs/clients.md: `python -m tests.conformance [CLIENT...]` runs those, or all, again.

Reports of clients that are not run are taken from build/conformance, where each run leaves its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from tests.harness.maven import BUILD, PYTHONPATH, ROOT
from tests.harness.python_client import AIOKAFKA, CONFLUENT, KAFKA_PYTHON
from tests.matrix.roster import CLIENTS

_PAGE = ROOT / "docs" / "clients.md"
_REPORTS = BUILD / "conformance"
_HEAD = """\
# What clients do with leader hints

For developers of Kafka clients, and for operators who want to know what a client gains. The
reports are of `leader-hints conformance` ([local.md](local.md#what-does-my-client-do-with-hints))
with librdkafka's mock cluster, one run each, on a machine with other work.
`python -m tests.conformance` writes this page again. How to read it:

- A report shows what a client can do with hints. The command offers every client the raised
  versions; `leader-hints run` offers them only to
  [known clients](limits.md#which-clients-get-hints).
- Metadata is delayed by two seconds while leaders move and while hints are wrong. A client with a
  recovery time of seconds waited for Metadata. Without the delay these times are much shorter.
- "Skipped for a hint": the client's back-off is set to a second. The client is refused three
  times without a hint and three times with one. It skips its back-off if it reaches the hinted
  leader in less than half the time that it needs without a hint. So a busy machine does not
  change the result. A client may have no such setting: then its own back-off applies.
- "Metadata asked as well" counts requests from the refusal to half a second after the recovery.
- Some consumers, such as franz-go's, change leaders in the task that asks for Metadata. They
  first wait for a pending Metadata request. If that request was sent before the hint came, the
  hint counts as not used.
- Produce may differ with idempotence on and off. Here it is off.
- What a client without hints gets from the proxy is not shown here: its errors may wait until
  Metadata is fresh ([how it works](how-it-works.md#errors-without-a-hint)).
"""


#: Installed beside the proxy, or of the matrix.
_CLIENTS = (CONFLUENT, KAFKA_PYTHON)
_OF_MATRIX = (AIOKAFKA, "franz-go", "java-3.6.2", "java-3.9.1")


def _clients() -> list[str]:
    """The names of all clients, in the order of the page."""
    of_matrix = [
        name for wanted in _OF_MATRIX for name in sorted(CLIENTS) if name.startswith(wanted)
    ]
    return [*_CLIENTS, *of_matrix]


def _run(client: str) -> None:
    """Run one client and keep its report."""
    command = [sys.executable, "-m", "leader_hints.cli.main", "conformance", "--"]
    command += [sys.executable, "-m", "tests.conformance.harness", client]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not ended.stdout:
        print(f"{client}: no report", file=sys.stderr)
        return
    _REPORTS.mkdir(parents=True, exist_ok=True)
    (_REPORTS / f"{client}.md").write_text(ended.stdout, encoding="utf-8")


def _title(client: str) -> str:
    return f"{client}-{version(client)}" if client in _CLIENTS else client


def _page(clients: Sequence[str]) -> Iterator[str]:
    yield _HEAD
    for client in clients:
        report = _REPORTS / f"{client}.md"
        if report.exists():
            yield f"\n## {_title(client)}\n\n{report.read_text(encoding='utf-8')}"


def main(wanted: Sequence[str]) -> None:
    """Run the wanted clients, or all, and write the page of all reports that there are."""
    clients = _clients()
    for client in wanted or clients:
        _run(client)
    _PAGE.write_text("".join(_page(clients)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
