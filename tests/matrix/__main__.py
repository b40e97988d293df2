"""``python -m tests.matrix``: run cells, keep their results, write docs/compatibility.md."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.harness import franz_go, maven
from tests.matrix import page, results
from tests.matrix.brokers import BROKERS
from tests.matrix.cell import MOVES, run_cell
from tests.matrix.options import common_parser
from tests.matrix.roster import CLIENTS, Client, is_run


def main() -> int:
    """Run what the options choose; returns 1 if a cell failed or none could be run."""
    options = _parse(sys.argv[1:])
    missing = maven.missing_tools()
    if missing is not None and not options.page_only:
        print(missing, file=sys.stderr)
        return 1
    failed = False
    if not options.page_only:
        folder = Path(options.logs or tempfile.mkdtemp(prefix="leader-hints-matrix-"))
        print(f"logs are in {folder}", flush=True)
        for broker in options.broker or BROKERS:
            chosen = [name for name in options.client or CLIENTS if is_run(broker, name)]
            clients = [CLIENTS[name] for name in chosen]
            if options.resume:
                clients = [client for client in clients if not _has_passed(broker, client)]
            failed = _run(broker, clients, folder / broker, options.moves) or failed
    page.write()
    print(f"wrote {page.FILE.relative_to(maven.ROOT)}")
    return 1 if failed else 0


def _run(broker: str, clients: Sequence[Client], folder: Path, moves: int) -> bool:
    """Run some clients before one broker version; returns whether a cell failed."""
    able = [client for client in clients if _able(client)]
    if not able:
        return len(able) < len(clients)
    failed = len(able) < len(clients) and maven.in_ci()
    kind = BROKERS[broker]
    with kind.cluster(folder / "cluster") as cluster:
        for client in able:
            cell = run_cell(kind, cluster, client, folder / client.name, moves)
            cell.save()
            print(
                f"{broker} {client.name}: {cell.failures or 'ok'}, {cell.records} records, "
                f"{cell.given} hints, used: {cell.used}, {cell.seconds:g} s",
                flush=True,
            )
            failed = failed or bool(cell.failures)
    return failed


def _able(client: Client) -> bool:
    missing = franz_go.missing_go() if client.family == "franz-go" else None
    if missing is not None:
        print(f"skipped {client.name}: {missing}", file=sys.stderr)
    return missing is None


def _has_passed(broker: str, client: Client) -> bool:
    cell = results.load(broker).get(client.name)
    return cell is not None and not cell.failures


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = common_parser("tests.matrix", __doc__, MOVES)
    parser.add_argument(
        "--client", action="append", choices=CLIENTS, help="only this one; may be repeated"
    )
    parser.add_argument("--resume", action="store_true", help="only cells that have not passed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
