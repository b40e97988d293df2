"""Writes docs/clients.md: `python -m tests.conformance [CLIENT...]` runs those, or all, again.

Reports of clients that are not run stay as they are. `--releases [RELEASE...]` runs releases of the
index instead.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from tests.conformance import index
from tests.conformance.releases import RELEASES
from tests.harness.maven import PYTHONPATH, ROOT
from tests.harness.python_client import AIOKAFKA, CONFLUENT, KAFKA_PYTHON
from tests.matrix.roster import CLIENTS

_PAGE = ROOT / "docs" / "clients.md"
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


def _run(client: str) -> str | None:
    """Run one client; return its report, if it made one."""
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
        return None
    return ended.stdout


def _title(client: str) -> str:
    return f"{client}-{version(client)}" if client in _CLIENTS else client


def _kept() -> dict[str, str]:
    """The reports that the page has, by title."""
    parts = re.split(r"^## (.*)$", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return {title: text.strip("\n") + "\n" for title, text in found}


def _page(clients: Sequence[str], reports: Mapping[str, str]) -> Iterator[str]:
    yield _HEAD
    yield f"\n{index.section()}"
    for client in clients:
        title = _title(client)
        if title in reports:
            yield f"\n## {title}\n\n{reports[title]}"


def main() -> int:
    """Run what is wanted, and write the page; return 1 if something could not be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="only these; default: all")
    parser.add_argument("--releases", nargs="*", choices=[*RELEASES], metavar="RELEASE")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    options = parser.parse_args()
    clients, reports, whole = _clients(), _kept(), True
    if options.releases is not None:
        whole = index.observe(options.releases or [*RELEASES])
    elif not options.page:
        for client in options.clients or clients:
            report = _run(client)
            whole = whole and report is not None
            if report is not None:
                reports[_title(client)] = report
    _PAGE.write_text("".join(_page(clients, reports)), encoding="utf-8")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
