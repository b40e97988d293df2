"""What a proxy costs where a consumer reads several partitions: CPU seconds, MB/s, page faults."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.cost import TOPIC, CostArm, alternating, cpu_seconds, relay, report
from bench.load import Work, do
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster

_BATCH = 1 << 17


@dataclass
class Consumed:
    """One figure for each round: CPU seconds and minor page faults of the proxy, and MB/s."""

    cpu: list[float] = field(default_factory=list)
    mb_per_s: list[float] = field(default_factory=list)
    faults: list[float] = field(default_factory=list)


Consumption = Mapping[tuple[CostArm, Work], Consumed]


def run(arms: Sequence[CostArm], works: Sequence[Work], rounds: int) -> Consumption:
    """Do all works in every arm, in alternating rounds after one that does not count."""
    figures: dict[tuple[CostArm, Work], Consumed] = defaultdict(Consumed)
    (version,) = {arm.version for arm in arms}
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-consuming-"))
    with ExitStack() as stack:
        cluster = stack.enter_context(
            RealCluster(version, "zk", folder=folder / "cluster", brokers=1, jvm_options=())
        )
        _fill(cluster, {work.topic: work for work in works}.values())
        for number, arm, place in alternating(arms, rounds, folder):
            for work, cpu, speed, faults in _round(arm, works, cluster, place):
                if number:
                    into = figures[arm, work]
                    into.cpu.append(cpu)
                    into.mb_per_s.append(speed)
                    into.faults.append(faults)
                shown = f"{cpu:.3f} s, {speed:.0f} MB/s, {faults} page faults"
                report(number, arm, work, shown)
    shutil.rmtree(folder)
    return figures


def _fill(cluster: RealCluster, works: Iterable[Work]) -> None:
    for work in works:
        ClusterAdmin(cluster).create_topics({work.topic: [[1]] * work.partitions}, TOPIC)
        produced = Work(
            "fill", "produce", work.amount, _BATCH, work.topic, partitions=work.partitions
        )
        do(produced, cluster.direct_bootstrap, work.topic)


def _round(
    arm: CostArm, works: Sequence[Work], cluster: RealCluster, folder: Path
) -> Iterator[tuple[Work, float, float, int]]:
    with relay(arm, cluster, folder) as pid:
        assert pid is not None
        for work in works:
            cpu, faults = cpu_seconds(pid), _page_faults(pid)
            seconds = do(work, cluster.bootstrap, work.topic)["seconds"]
            speed = work.amount / seconds / 1e6
            yield work, cpu_seconds(pid) - cpu, speed, _page_faults(pid) - faults


def _page_faults(pid: int) -> int:
    """Minor faults of a process so far: field 10 of its stat, proc_pid_stat(5)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])
