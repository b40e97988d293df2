"""``python -m tests.readiness``: try the clients; write the table of docs/deploy/kafka-4.md."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.harness import maven
from tests.readiness import page
from tests.readiness.roster import CLIENTS
from tests.readiness.trial import at_new_brokers, at_old_brokers


def main() -> int:
    """Return 1 if a client that fails at brokers of Kafka 4 was said to be served."""
    parser = argparse.ArgumentParser(prog="python -m tests.readiness", description=__doc__)
    parser.add_argument("--client", action="append", choices=[*CLIENTS], help="only these")
    parser.add_argument("--no-write", action="store_true", help="leave the page as it is")
    options = parser.parse_args()
    missing = maven.missing_tools()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 1
    clients = [CLIENTS[name] for name in options.client or CLIENTS]
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-readiness-"))
    print(f"logs are in {folder}", flush=True)
    old, verdicts = at_old_brokers(clients, folder)
    new = at_new_brokers(clients, folder)
    text = page.render(clients, old, verdicts, new)
    print(text)
    if not options.no_write and not options.client:
        page.write(text)
    wrong = page.wrong(clients, verdicts, new)
    for name in wrong:
        print(f"{name} was said to be served, and fails", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
