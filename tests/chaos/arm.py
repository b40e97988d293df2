"""One run of faults by a seed, with proxies or without."""

import contextlib
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.crowd import Crowd
from tests.chaos.faults import FAULTS, order
from tests.chaos.stage import Stage, StageError
from tests.harness.small_disk import NoMountError, mounted
from tests.harness.waiting import patience, until
from tests.matrix.brokers import BROKERS

#: Seconds that a fault lasts, at least and at most.
_LASTS = (1.0, 5.0)
#: Within which all clients must work again, and brokers are what they were; a broken run ends then.
_RECOVERY_S = 180.0
#: Smaller than the journal may become: it is full soon, and stays so.
_JOURNAL_DISK = 4096
#: Brokers are killed here: others are to lead soon.
_SOON_DEAD = {"zookeeper.session.timeout.ms": "6000", "broker.session.timeout.ms": "9000"}


@dataclass
class Result:
    """``recoveries``: by fault, seconds from its end until every client had made progress again.

    ``violation``: what was lost, doubled, out of order or gave up; "" where nothing was.
    ``broken``: what the brokers did not do for the run to go on; "" where it came to its end.
    """

    proxied: bool
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    records: int = 0
    hints: float = 0
    journal_dropped: float = 0
    seconds: float = 0
    violation: str = ""
    broken: str = ""


def run(broker: str, folder: Path, *, proxied: bool, seconds: float, seed: int) -> Result:
    """Run faults for so many seconds, then check everything."""
    result = Result(proxied)
    folder.mkdir(parents=True)
    journal = folder / "journal"
    journal.mkdir()
    with patience(_RECOVERY_S), contextlib.ExitStack() as stack:
        if proxied:
            try:
                stack.enter_context(mounted(journal, _JOURNAL_DISK))
            except NoMountError as reason:
                print(f"the journal's disk will not be full: {reason}", flush=True)
        cluster = stack.enter_context(BROKERS[broker].cluster(folder / "cluster", _SOON_DEAD))
        stage = stack.enter_context(Stage(cluster, folder, journal, proxied=proxied))
        crowd = Crowd(cluster.bootstrap, folder, "with" if proxied else "without")
        crowd.create_topics(stage.admin)
        stack.enter_context(crowd)
        began = time.monotonic()
        try:
            _work(stage, crowd, result, began + seconds, seed)
            crowd.stop_producing()
            stage.wait_in_sync(crowd.topics.values())
            result.records = crowd.check(stage.admin)
            cluster.check()
            if proxied:
                stage.stop_proxy()
        except StageError as error:
            result.broken = str(error)
        except AssertionError as violation:
            result.violation = str(violation) or repr(violation)
        result.seconds = time.monotonic() - began
        result.hints, result.journal_dropped = stage.hints, stage.journal_dropped
    return result


def _work(stage: Stage, crowd: Crowd, result: Result, until_when: float, seed: int) -> None:
    for name, chance in order(seed):
        if time.monotonic() >= until_when:
            return
        lasts = chance.uniform(*_LASTS)
        with FAULTS[name](stage, chance, crowd.partitions):
            # A fault has a length; nothing is waited for.
            time.sleep(lasts)
        seconds = _recover(stage, crowd)
        result.recoveries[name].append(seconds)
        arm = "with proxies" if result.proxied else "without"
        print(f"{arm}: {name} for {lasts:.1f} s, recovered in {seconds:.2f} s", flush=True)


def _recover(stage: Stage, crowd: Crowd) -> float:
    """Return how many seconds it took all clients to make progress; then wait for replicas."""
    ended, before = time.monotonic(), crowd.progress()

    def works() -> bool:
        crowd.check_alive()
        return not crowd.laggards(before)

    try:
        until(works, "all clients work again")
    except AssertionError as late:
        raise AssertionError(f"{late}: {crowd.laggards(before)}") from None
    recovered = time.monotonic() - ended
    stage.wait_in_sync(crowd.topics.values())
    return recovered
