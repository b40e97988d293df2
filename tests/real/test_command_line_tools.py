"""Kafka's command line tools of 2.4 and 4.1 through proxies in front of brokers of 2.4."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.maven import Library, broker_library
from tests.harness.proxyproc import ProxyFleet
from tests.real.names import ZK_24

_SECONDS: Final = 120.0
#: Lines that are written before and after the leader moves.
_LINES: Final = 50
_OLD: Final = "2.4.1"
_NEW: Final = "4.1.1"
_CLASSES: Final = {
    _OLD: {
        "topics": "kafka.admin.TopicCommand",
        "producer": "kafka.tools.ConsoleProducer",
        "consumer": "kafka.tools.ConsoleConsumer",
        "groups": "kafka.admin.ConsumerGroupCommand",
    },
    _NEW: {
        "topics": "org.apache.kafka.tools.TopicCommand",
        "producer": "org.apache.kafka.tools.ConsoleProducer",
        "consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    },
}


class _Tools:
    """The tools; each call is a process of its own, as their users have it."""

    def __init__(self, version: str, bootstrap: str) -> None:
        # Those of 2.4 come with the broker.
        library = broker_library(version) if version == _OLD else Library("kafka-tools", version)
        self._version = version
        self._classpath = library.fetch().classpath
        self._bootstrap = bootstrap

    def command(self, tool: str, *arguments: str) -> Sequence[str]:
        """The command of a tool."""
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", self._classpath]
        # The producer of 2.4 has no other name for it.
        old = tool == "producer" and self._version == _OLD
        bootstrap = ("--broker-list" if old else "--bootstrap-server", self._bootstrap)
        return [*java, _CLASSES[self._version][tool], *bootstrap, *arguments]

    def run(self, tool: str, *arguments: str) -> str:
        """Run a tool to its end; return what it wrote."""
        done = subprocess.run(
            self.command(tool, *arguments),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{tool}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.mark.parametrize("version", [_OLD, _NEW])
@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_topics_records_and_groups(
    cluster: RealCluster, version: str, admin: ClusterAdmin, tmp_path: Path
) -> None:
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    topic, group = f"tools-{version}", f"tools-group-{version}"
    with ProxyFleet.before(routes, tmp_path / "proxies", hints="on", sidecars=True) as fleet:
        tools = _Tools(version, cluster.bootstrap)
        tools.run("topics", "--create", "--topic", topic, "--partitions", "1",
                  "--replication-factor", "3")  # fmt: skip
        assert topic in tools.run("topics", "--list").split()
        lines = [f"line {number}" for number in range(2 * _LINES)]
        with subprocess.Popen(
            tools.command("producer", "--topic", topic, "--request-required-acks", "all"),
            stdin=subprocess.PIPE,
            text=True,
        ) as producer:
            assert producer.stdin is not None
            for number, line in enumerate(lines):
                if number == _LINES:
                    producer.stdin.flush()
                    admin.move_leader(topic)
                producer.stdin.write(f"{line}\n")
            producer.stdin.close()
            assert producer.wait(_SECONDS) == 0
        admin.move_leader(topic)
        read = tools.run("consumer", "--topic", topic, "--from-beginning", "--group", group,
                         "--max-messages", f"{len(lines)}", "--timeout-ms", "60000")  # fmt: skip
        # What is retried while leaders move may come twice, and before what came first.
        assert {*read.splitlines()} >= {*lines[: len(lines) // 2]}
        described = tools.run("groups", "--describe", "--group", group, "--timeout", "60000")
        rows = [line.split() for line in described.splitlines() if topic in line]
        assert len(rows) == 1, described
        (row,) = rows
        assert row[:3] == [group, topic, "0"]
        assert int(row[3]) == len(lines)
        assert topic in tools.run("topics", "--describe", "--topic", topic)
        tools.run("topics", "--delete", "--topic", topic)
        assert not fleet.events("link_failed")
        assert fleet.metric("leader_hints_links_total") > 0
