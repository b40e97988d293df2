"""``python -m tests.closest``: all clients that name a rack, before brokers without a selector."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.closest.crowd import LIBRARIES, TOPICS, begin
from tests.closest.trouble import LAG_MS, Trouble
from tests.harness import franz_go, maven
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints
from tests.harness.rack_fleet import RackFleet
from tests.harness.waiting import patience
from tests.matrix.brokers import BROKERS

_BROKERS = ("2.4.1-zk", "2.8.2-zk", "3.4.1-zk", "3.6.2-zk", "3.6.2-kraft")
_PARTITIONS = tuple(range(10))
#: A consumer may wait for what its library waits for after a broker is gone.
_PATIENCE_S = 180.0


def main() -> int:
    """Run what the options choose; returns 1 if anything was lost, doubled or reordered."""
    options = _parse(sys.argv[1:])
    missing = maven.missing_tools() or franz_go.missing_go()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 1
    folder = Path(options.logs or tempfile.mkdtemp(prefix="leader-hints-closest-"))
    print(f"logs are in {folder}", flush=True)
    failed = False
    for broker in options.broker or _BROKERS:
        try:
            with patience(_PATIENCE_S):
                _run(broker, options, folder / broker)
        except AssertionError as error:
            failed = True
            print(f"{broker}: FAILED: {error}", flush=True)
    return 1 if failed else 0


def _run(broker: str, options: argparse.Namespace, folder: Path) -> None:
    libraries = options.client or [*LIBRARIES]
    mode: Hints = "observe" if options.observe else "on"
    kind = BROKERS[broker]
    began = time.monotonic()
    with ExitStack() as processes:
        cluster = processes.enter_context(
            RealCluster(
                kind.version,
                kind.mode,
                folder=folder / "cluster",
                overrides={"replica.lag.time.max.ms": LAG_MS},
            )
        )
        admin = ClusterAdmin(cluster)
        nodes = [*cluster.brokers]
        layout = [nodes[n % 3 :] + nodes[: n % 3] for n in _PARTITIONS]
        admin.create_topics(dict.fromkeys(TOPICS, layout), {"min.insync.replicas": "2"})
        fleet = RackFleet(cluster, folder / "proxies", mode, poll_ms=1000)
        processes.enter_context(fleet.proxies)
        crowd = begin(processes, folder, fleet.bootstrap, libraries, _PARTITIONS)
        trouble = Trouble(cluster, admin, crowd, _PARTITIONS)
        try:
            trouble.make(options.moves)
        finally:
            done = ", ".join(f"{count} {what}" for what, count in trouble.done.items())
            same, crossing = fleet.read("same"), fleet.read("crossing")
            print(
                f"{broker}: {done}; {same / (same + crossing):.1%} of {same + crossing:.0f} bytes "
                "were read in the rack",
                flush=True,
            )
        records = crowd.finish(admin)
        cluster.check()
    print(f"{broker}: ok, {records} records, {time.monotonic() - began:.0f} s", flush=True)
    for library, median, p99 in crowd.lags():
        print(f"{broker} {library}: median {median:.0f} ms, p99 {p99:.0f} ms", flush=True)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.closest", description=__doc__)
    parser.add_argument(
        "--broker", action="append", choices=_BROKERS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--client", action="append", choices=[*LIBRARIES], help="only this one; may be repeated"
    )
    parser.add_argument("--moves", type=int, default=200, help="leader moves at each broker")
    parser.add_argument(
        "--observe", action="store_true", help="name no replica: whether it was due to that"
    )
    parser.add_argument("--logs", help="a new folder for logs; by default a temporary one")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
