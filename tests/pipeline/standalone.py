"""Spark's own cluster on this machine: a master and workers, processes of their own."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pyspark

from tests.harness import processes
from tests.harness.waiting import until

_SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_ADDRESS: Final = r"Starting Spark master at (spark://\S+)"
_REGISTERED: Final = "Successfully registered with master"
#: Java may take its time to start where machines are shared.
_START_S: Final = 300
#: What a driver needs besides: small executors, and no address but this machine's own.
SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Cluster(NamedTuple):
    """``master``: its address; ``workers``: each has one core, and its executors in its group."""

    master: str
    workers: list[subprocess.Popen[str]]

    def kill_worker(self) -> None:
        """Kill a worker and its executors."""
        processes.end(self.workers.pop())


@contextmanager
def standalone_cluster(folder: Path, workers: int, memory: str = "1g") -> Iterator[Cluster]:
    """Have a cluster; ``folder`` gets its logs and work. ``memory``: of each worker."""
    with ExitStack() as ends:

        def started(name: str, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
            log = folder / f"{name}.log"
            process = processes.start(
                [str(_SPARK_CLASS), *arguments],
                output=log,
                environment={
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_MEMORY": "256m",
                    # Else it has a port that is not chosen at run time.
                    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
                },
                cwd=folder,
            )
            ends.callback(processes.end, process)
            return process, log

        def logged(log: Path, pattern: str) -> re.Match[str]:
            return until(
                lambda: re.search(pattern, log.read_text(errors="replace")),
                f"{pattern} in {log}",
                _START_S,
            )

        deploy = "org.apache.spark.deploy"
        places = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        _, log = started("master", f"{deploy}.master.Master", *places)
        master = logged(log, _ADDRESS)[1]
        begun = [
            started(
                f"worker-{number}",
                f"{deploy}.worker.Worker",
                *places,
                *("--cores", "1", "--memory", memory, "--work-dir", str(folder / str(number))),
                master,
            )
            for number in range(workers)
        ]
        for _, log in begun:
            logged(log, _REGISTERED)
        yield Cluster(master, [process for process, _ in begun])
