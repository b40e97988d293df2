"""ProxyProcess: a `leader-hints run` process, its log and its metrics."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from demo.move import LogLine

_START_SECONDS = 60.0
_ANSWER_SECONDS = 30.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LAST_LINES = 5

Address = tuple[str, int]


class ProxyFailedError(Exception):
    """The proxy did not start, or ended before it was stopped."""


class ProxyProcess:
    """A proxy in front of the brokers of one cluster, until the end of its `with` block."""

    def __init__(
        self,
        routes: Mapping[Address, Address],
        hints: str,
        admin: Address,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start it and wait until every route listens.

        ``routes``: where to listen -> the broker behind it. ``hints``: "on", "observe" or "off".
        ``settings``: further settings, by the names of their environment variables.

        :raises ProxyFailedError: it did not start.
        """
        self.addresses = frozenset(_text(listen) for listen in routes)
        """Where it listens, as host:port."""
        self._admin = f"http://{_text(admin)}"
        self._lines: list[str] = []
        self._process = _start(routes, hints, admin, settings or {})
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        try:
            self._await_start(len(routes))
        except ProxyFailedError:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def check(self) -> None:
        """Raise ProxyFailedError if the process has ended."""
        if self._process.poll() is not None:
            raise self._failure(f"ended with exit code {self._process.returncode}")

    def log(self, event: str) -> tuple[LogLine, ...]:
        """The log lines of one event so far, oldest first."""
        lines = map(_parsed, self._lines.copy())
        return tuple(line for line in lines if line.get("event") == event)

    def metric(self, name: str, **labels: str) -> int:
        """Return the sum of a counter's samples that have these labels.

        :raises ProxyFailedError: the proxy does not answer.
        """
        try:
            with urllib.request.urlopen(
                f"{self._admin}/metrics", timeout=_ANSWER_SECONDS
            ) as answer:
                text = answer.read().decode()
        except OSError as error:
            raise self._failure(f"gave no metrics ({error})") from None
        return int(
            sum(
                sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == name and labels.items() <= sample.labels.items()
            )
        )

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line.rstrip())

    def _await_start(self, routes: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while len(self.log("listening")) < routes or not self._is_live():
            self.check()
            if time.monotonic() > deadline:
                raise self._failure(f"was not ready within {_START_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _is_live(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._admin}/livez", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _failure(self, what: str) -> ProxyFailedError:
        self._reader.join(timeout=1)
        lines = "".join(f"\n  {line}" for line in self._lines[-_LAST_LINES:])
        return ProxyFailedError(f"the proxy {what}; the end of its log:{lines}")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()


def _start(
    routes: Mapping[Address, Address], hints: str, admin: Address, settings: Mapping[str, str]
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "leader_hints.cli.main", "run", "--hints", hints]
    for listen, upstream in routes.items():
        command += ["--route", f"{_text(listen)}={_text(upstream)}"]
    command += ["--admin", _text(admin), "--log-level", "debug", "--log-format", "json"]
    # Settings that someone has in the environment are for their proxy, not for this one.
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("LEADER_HINTS_")
    }
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, **settings},
    )


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def _parsed(line: str) -> LogLine:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
