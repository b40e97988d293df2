"""The dashboard's queries on a real Prometheus, and the alert rules where they fire and do not."""

import dataclasses
import math
import re
import socket
from contextlib import ExitStack
from pathlib import Path

import yaml

from leader_hints.observe.metric_families import FAMILIES
from tests.docs.monitoring import (
    RULES,
    RULES_TEST,
    dashboard,
    panel_queries,
    prometheus,
    promtool,
    rules,
    variable_queries,
)
from tests.docs.pages import DOCS
from tests.harness.waiting import until
from tests.mock.moving import TOPIC, Scene, open_scene

_CHOSEN = {"type": "prometheus", "uid": "${datasource}"}
_DEADLINE_S = 60.0
_SETTINGS = """\
hold: {{deadline_ms: 0, settle: true}}
limits: {{first_bytes_ms: 500}}
metrics: {{topics: true}}
journal: {{kind: files, path: {path}}}
"""
#: ApiVersions of a version whose body nobody knows, with a body that is none: it passes unread.
_UNKNOWN_API_VERSIONS = bytes.fromhex("0000000e0012 001f 00000001 0000 00 ff ff ff")
#: Its panel would look like that of the requests.
_WITHOUT_PANEL = "leader_hints_responses_total"
_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
_PROCESS |= {"process_open_fds", "process_max_fds", "up"}


def _metrics_in(query: str) -> set[str]:
    return set(re.findall(r"\b(?:leader_hints|process)_\w+|\bup\b", query))


def _known() -> set[str]:
    known = set(_PROCESS)
    for family in FAMILIES.values():
        name = family.full_name
        histogram = family.type == "histogram"
        known |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if histogram else {name}
    return known


def test_queries_and_rules_name_metrics_that_there_are() -> None:
    for title, query in panel_queries().items():
        assert _metrics_in(query) <= _known(), title
        assert _metrics_in(query), title
    for rule in rules():
        assert _metrics_in(rule["expr"]) <= _known(), rule["alert"]


def test_each_metric_of_an_alert_has_a_panel() -> None:
    shown = {metric for query in panel_queries().values() for metric in _metrics_in(query)}

    for rule in rules():
        assert _metrics_in(rule["expr"]) <= shown, rule["alert"]


def test_each_metric_has_a_panel() -> None:
    shown = {metric for query in panel_queries().values() for metric in _metrics_in(query)}

    for family in FAMILIES.values():
        name = family.full_name
        assert name == _WITHOUT_PANEL or shown & {name, f"{name}_bucket"}, name


def test_the_dashboard_can_be_imported_as_it_is() -> None:
    panels = dashboard()["panels"]
    cells = [
        (place["x"] + column, place["y"] + row)
        for place in (panel["gridPos"] for panel in panels)
        for column in range(place["w"])
        for row in range(place["h"])
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells), "panels overlap"
    assert all(x < 24 for x, _ in cells)
    for panel in panels:
        assert panel["title"]
        for part in (panel, *panel.get("targets", ())):
            assert part.get("datasource", _CHOSEN) == _CHOSEN, "only the source that is chosen"


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr

    done = promtool("test", "rules", RULES_TEST)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_is_seen_to_fire_and_not_to_fire_and_is_explained() -> None:
    fires: set[str] = set()
    not_yet: set[str] = set()
    for test in yaml.safe_load(RULES_TEST.read_text(encoding="utf-8"))["tests"]:
        for case in test["alert_rule_test"]:
            (fires if case["exp_alerts"] else not_yet).add(case["alertname"])
    names = {rule["alert"] for rule in rules()}
    runbook = (DOCS / "runbook.md").read_text(encoding="utf-8")

    assert fires == not_yet == names
    assert sorted(re.findall(r"^### (LeaderHints\w+)$", runbook, flags=re.MULTILINE)) == sorted(
        names
    )
    for rule in rules():
        section = runbook.split(f"### {rule['alert']}\n")[1]
        assert section.strip().startswith(f"*{rule['labels']['severity'].capitalize()}.*")


def _stir(first: Scene, second: Scene, third: Scene) -> None:
    """Have errors without a hint and with one, bytes that are not Kafka's, and a limit reached.

    Nothing is held, so the first to meet a move gets no hint; the second, that comes later, does.
    The third can use none: its errors are settled or not.
    """
    for partition in (0, 1):
        leader, _ = first.cluster.leaders[TOPIC, partition]
        first.cluster.set_leader(TOPIC, partition, leader % 3 + 1)
        first.produce(partition)
        second.produce(partition)
        third.produce(partition)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", _UNKNOWN_API_VERSIONS, b""):
        with socket.create_connection(first.proxy.routes[0][0], timeout=10) as client:
            client.sendall(sent)
            client.recv(1)


def test_no_query_of_the_dashboard_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    settings = tmp_path / "settings.yaml"
    settings.write_text(_SETTINGS.format(path=folder), encoding="utf-8")
    queries = panel_queries()
    with (
        open_scene(tmp_path, arguments=("--config", str(settings))) as scene,
        prometheus([scene.proxy.admin.removeprefix("http://")], tmp_path) as server,
        ExitStack() as stack,
    ):
        first, second = dataclasses.replace(scene), scene
        stack.enter_context(second.another_producer())
        # A client that is not known to use hints.
        third = dataclasses.replace(scene)
        unknown = third.another_producer(
            client_software_name="a", client_software_version="1", enable_idempotence="true"
        )
        stack.enter_context(unknown)
        for producer in (second, third):
            producer.produce(0)
            producer.produce(1)

        # The proxies of this test have no certificates, and its clients no racks.
        absent = re.compile("certificate|consumer_bytes|closest_replica")
        empty = {title: query for title, query in queries.items() if not absent.search(query)}

        def fill() -> bool:
            """Have results, and leave out what has had one.

            Not all have one at the same time where all is slow: rates are of the last ten seconds,
            and after a scrape that took over one second there are no present values.
            """
            _stir(first, second, third)
            for title, query in [*empty.items()]:
                if any(math.isfinite(value) for value in server.query(query)):
                    del empty[title]
            return not empty

        try:
            until(fill, "all queries have had results", _DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"empty: {[*empty]}") from error
        for name, (series, label) in variable_queries().items():
            assert server.label_values(series, label), name
        until(lambda: {*server.rule_health().values()} == {"ok"}, "all rules were evaluated")
        # It may be pending since a scrape that took too long.
        down = 'ALERTS{alertname="LeaderHintsDown"}'
        until(lambda: not server.query(down), "the proxy is known to be up")
