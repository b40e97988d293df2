"""The proxy as users run it: processes of ``leader-hints run`` before a cluster."""

import contextlib
import copy
import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from prometheus_client.parser import text_string_to_metric_families

from tests.harness import processes
from tests.harness.connection import Address, joined
from tests.harness.log_lines import check_name
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.harness.waiting import until

Hints = Literal["on", "observe", "off"]
Route = tuple[Address, Address]
LogLine = Mapping[str, Any]

#: What samples have behind the name of their family.
_ENDINGS = ("", "_total", "_info", "_bucket", "_sum", "_count")
#: Longer than a proxy may take for its links and its journal.
_STOP_S = 60.0


class ProxyError(AssertionError):
    """The proxy died, wrote an error, or ended badly; its log is in the message."""


class ProxyProcess:
    """One ``leader-hints run``, as a context manager; leaving it checks that it went well."""

    def __init__(
        self,
        routes: Sequence[Route],
        log: Path,
        *,
        hints: Hints = "on",
        arguments: Sequence[str] = (),
        security: Sequence[Mapping[str, Any]] = (),
        program: str = "leader_hints.cli.main",
    ) -> None:
        """``routes`` are pairs of listening and upstream addresses; ``log`` must be a new file.

        ``security``: for each route the settings that it has beyond these. ``program``: the module
        that is run; it has the command line of the proxy's own.
        """
        self.routes = list(routes)
        self.log = log
        self._errs = False
        self._listeners = len(self.routes)
        self._admin = free_ports(1)[0]
        self._argv = [
            *(sys.executable, "-m", program, "run", "--hints", hints),
            *("--admin", f"127.0.0.1:{self._admin}"),
            *("--log-level", "debug", "--log-format", "json"),
            *arguments,
        ]
        if security:
            self.environment = {"LEADER_HINTS_ROUTES": _as_json(routes, security)}
        else:
            texts = ",".join(_route_text(route) for route in routes)
            self.environment = {"LEADER_HINTS_ROUTES": texts}
        # A process that a busy machine does not run is not stuck, and that line is an error.
        self.environment["LEADER_HINTS_STUCK_MS"] = "60000"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def exit_code(self) -> int | None:
        """What it has ended with, ``None`` while it runs. One that was told to end may have."""
        return self._process.poll()

    def kill(self) -> None:
        """End it at once, if it runs."""
        processes.end(self._process)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it stand still meanwhile: it runs on afterwards as if nothing had been."""
        with processes.frozen(self._process):
            yield

    def successor(self, log: Path) -> Self:
        """Another process with the same arguments and environment; ``log`` must be a new file."""
        other = copy.copy(self)
        other.log = log
        return other

    def expect_errors(self) -> None:
        """Have errors in its log be none of the test's."""
        self._errs = True

    @property
    def admin_address(self) -> Address:
        """Where its admin server listens."""
        return "127.0.0.1", self._admin

    @property
    def admin(self) -> str:
        """The URL of its admin server, without a path."""
        return f"http://127.0.0.1:{self._admin}"

    def status(self) -> dict[str, Any]:
        """What its admin server says of it."""
        status: dict[str, Any] = json.loads(self.get("/status"))
        return status

    def switch_hints(
        self, route: str, hints: Hints, *, token: str = "", seconds: float = 10
    ) -> None:
        """Change at run time what a route does about hints.

        :raises TimeoutError: there is no answer after so many seconds.
        """
        url = f"{self.admin}/routes/{urllib.parse.quote(route, safe='')}/hints"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        put = urllib.request.Request(url, hints.encode(), headers, method="PUT")
        with urllib.request.urlopen(put, timeout=seconds):
            pass

    def __enter__(self) -> Self:
        assert not self.log.exists(), f"{self.log} has another proxy's lines"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = processes.start(
            self._argv, output=self.log, environment=self.environment | {"PYTHONPATH": PYTHONPATH}
        )
        try:
            until(self._ready, "the proxy is ready")
        except BaseException:
            processes.end(self._process)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        died = self._process.poll() not in (None, 0)
        code = processes.end(self._process, _STOP_S)
        if error is not None and not died:
            return  # The test has failed already; its own error says more.
        if died or code != 0:
            raise ProxyError(f"the proxy ended with {code}:\n{self.log_tail()}") from error
        errors = [line for line in self.lines() if line["level"] in ("error", "critical")]
        if errors and not self._errs:
            raise ProxyError(f"the proxy wrote errors: {errors[:3]}") from error

    def check(self) -> None:
        """Raise ProxyError if it has ended."""
        if self._process.poll() is not None:
            raise ProxyError(f"the proxy ended by itself:\n{self.log_tail()}")

    def lines(self) -> list[LogLine]:
        """Its log lines so far; what is not JSON (a traceback) comes as an error line."""
        text = self.log.read_text(errors="replace")
        whole = text[: text.rfind("\n") + 1]
        return [_parse(line) for line in whole.splitlines()]

    def events(self, name: str) -> list[LogLine]:
        """Its log lines of one event."""
        check_name(name)
        return [line for line in self.lines() if line["event"] == name]

    def metric(self, name: str, **labels: str) -> float:
        """A metric's present value, summed over all labels that are not given."""
        return sum(value for found, value in self.samples(name) if labels.items() <= found.items())

    def wait_plans(self, routes: int) -> None:
        """Wait until the brokers of so many routes have told their versions."""
        # A route has one more line each time that its broker is connected to again.
        until(
            lambda: len({line["route"] for line in self.events("route_plan")}) >= routes,
            f"{routes} brokers answer the proxy",
        )

    def samples(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """A metric's present values, each with its labels.

        One that the proxy does not have is an error, since it would be zero for ever.
        """
        families = list(text_string_to_metric_families(self.get("/metrics")))
        known = {f"{family.name}{end}" for family in families for end in _ENDINGS}
        assert name in known, f"the proxy has no metric {name}"
        return [
            (sample.labels, sample.value)
            for family in families
            for sample in family.samples
            if sample.name == name
        ]

    def log_tail(self, lines: int = 60) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _ready(self) -> bool:
        self.check()
        with contextlib.suppress(OSError):
            self.get("/livez")
            return len(self.events("listening")) >= self._listeners
        return False

    def get(self, path: str) -> str:
        """What its admin server answers for a path."""
        with urllib.request.urlopen(f"{self.admin}{path}", timeout=10) as answer:
            body: bytes = answer.read()
            return body.decode()


class LocalProcess(ProxyProcess):
    """One ``leader-hints local``: ``base`` is the port of its bootstrap listener."""

    def __init__(
        self,
        bootstrap: str,
        base: int,
        log: Path,
        *,
        brokers: int,
        arguments: Sequence[str] = (),
        host: str = "127.0.0.1",
    ) -> None:
        """``bootstrap``: of the cluster, "" for none; ``brokers``: how many it has.

        ``host``: where it listens, as text before a port.
        """
        super().__init__([], log)
        self._listeners = brokers + 1
        self.bootstrap = f"{host}:{base}"
        self._argv = [
            *(sys.executable, "-m", "leader_hints.cli.main", "local", "--listen", self.bootstrap),
            *(("--bootstrap", bootstrap) if bootstrap else ()),
            *("--admin", f"127.0.0.1:{self._admin}"),
            *("--log-level", "debug", "--log-format", "json"),
            *arguments,
        ]

    def begin_fault(self, action: str, **values: object) -> int:
        """Put a fault in force; return its number."""
        body = json.dumps({"action": action, **values}).encode()
        with urllib.request.urlopen(f"{self.admin}/faults", body, timeout=10) as answer:
            number: int = json.loads(answer.read())["number"]
            return number

    def end_faults(self) -> None:
        """Take all faults back."""
        asked = urllib.request.Request(f"{self.admin}/faults", method="DELETE")
        with urllib.request.urlopen(asked, timeout=10):
            pass

    def faults_done(self, number: int) -> list[LogLine]:
        """The messages that a fault was applied to."""
        return [line for line in self.events("fault_done") if line["number"] == number]


class ProxyFleet:
    """Proxies before all brokers of a cluster: one process for all, or one for each broker."""

    def __init__(self, processes: Sequence[ProxyProcess]) -> None:
        self.processes = list(processes)

    @classmethod
    def before(
        cls,
        routes: Sequence[Route],
        folder: Path,
        *,
        hints: Hints = "on",
        sidecars: bool = False,
        arguments: Sequence[str] = (),
    ) -> Self:
        """Proxies for ``routes``; with ``sidecars`` each route has a process of its own."""
        groups = [[route] for route in routes] if sidecars else [list(routes)]
        return cls(
            [
                ProxyProcess(
                    group, folder / f"proxy-{number}.log", hints=hints, arguments=arguments
                )
                for number, group in enumerate(groups, 1)
            ]
        )

    def events(self, name: str) -> list[LogLine]:
        """The log lines of one event from all of them."""
        return [line for process in self.processes for line in process.events(name)]

    def metric(self, name: str, **labels: str) -> float:
        """A metric's present value, summed over all of them."""
        return sum(process.metric(name, **labels) for process in self.processes)

    def samples(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """A metric's present values from all of them, each with its labels."""
        return [sample for process in self.processes for sample in process.samples(name)]

    def wait_ids_offered(self) -> None:
        """Wait until each of them offers synthetic topic ids."""
        until(
            lambda: all(process.events("topic_ids_offered") for process in self.processes),
            "synthetic topic ids are offered",
        )

    def check(self) -> None:
        """Raise ProxyError if one of them has ended."""
        for process in self.processes:
            process.check()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            for process in self.processes:
                started.enter_context(process)
            self._started = started.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.__exit__(kind, error, trace)


def _route_text(route: Route) -> str:
    listen, upstream = route
    return f"{joined(listen)}={joined(upstream)}"


def _as_json(routes: Sequence[Route], security: Sequence[Mapping[str, Any]]) -> str:
    texts = (_route_text(route).split("=") for route in routes)
    return json.dumps(
        [
            {"listen": listen, "upstream": upstream, **settings}
            for (listen, upstream), settings in zip(texts, security, strict=True)
        ]
    )


def _parse(line: str) -> LogLine:
    try:
        parsed = json.loads(line)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and "event" in parsed and "level" in parsed:
        return parsed
    return {"event": line, "level": "error"}
