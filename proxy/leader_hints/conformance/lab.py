"""A virtual cluster inside this process, in a thread of its own, for tests of clients.

For tests and for the conformance command: what is called here returns when it has happened, from
any thread but the lab's own.

Tested in ``tests/mock/test_lab.py``.
"""

import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self

import trio

from leader_hints import app
from leader_hints.address import Address
from leader_hints.conformance.wire_log import Seen
from leader_hints.conformance.wire_recorder import WireRecorder
from leader_hints.errors import LeaderHintsError, ListenError
from leader_hints.faults.fault import Fault
from leader_hints.faults.injector import FaultInjector
from leader_hints.local.host import Found
from leader_hints.settings.clients import ClientSettings
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.log import LogSettings
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
from leader_hints.settings.subscription import SubscriptionSettings

_HOST: Final = "127.0.0.1"
#: Below the ports that systems pick for outgoing connections, so that none of those takes one.
_PORTS: Final = range(20_000, 30_000)
_ATTEMPTS: Final = 50
#: Labs that may find their ports taken by another process, one after the other.
_STARTS: Final = 5
_START_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.01
#: Not the module's own generator: tests seed that, so labs of several processes would all try the
#: same ports, and what a test draws would depend on how many labs there were before.
_chance: Final = random.SystemRandom()


class LabError(LeaderHintsError):
    """The lab did not start, or what was asked of it did not happen in time."""


class Cluster(Protocol):
    """A cluster whose leaders can be moved."""

    @property
    def brokers(self) -> Mapping[int, tuple[str, int]]:
        """Node id -> host and port."""

    def set_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> tuple[int, int]:
        """Make ``node`` the leader of a partition; return it with its epoch."""


class Lab:
    """A proxy in front of a cluster, inside this process, that injects faults and records messages.

    A context manager; the cluster must be started and stopped elsewhere. ``hold``: how long errors
    wait for hints. ``like``: settings whose TLS and SASL are used towards the brokers.
    """

    def __init__(
        self,
        cluster: Cluster,
        hold: HoldSettings | None = None,
        like: LocalSettings | None = None,
    ) -> None:
        self._cluster = cluster
        self._hold = hold or HoldSettings()
        self._like = like
        self._recorder = WireRecorder(time.monotonic)
        self._injector = FaultInjector(
            on_request=self._recorder.request, on_response=self._recorder.response
        )
        self._base = 0
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._started = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="leader-hints-lab", daemon=True)

    @property
    def bootstrap(self) -> str:
        """What clients are given as bootstrap.servers, once the lab is entered."""
        return f"{_HOST}:{self._base}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(_START_SECONDS)
        if self._failed is not None or not self._started.is_set():
            self._end()
            raise LabError(f"the lab did not start: {self._failed or 'no answer of the brokers'}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(lambda: self._scope.cancel())
        self._thread.join(_START_SECONDS)

    def move_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> tuple[int, int]:
        """Make ``node`` the leader of a partition; return it with its epoch.

        ``metadata_lag``: seconds for which Metadata names the former leader.
        """
        return self._cluster.set_leader(topic, partition, node, metadata_lag)

    def inject(self, action: str, **values: Any) -> int:
        """Begin a fault; return its number.

        ``values``: the fields of :class:`leader_hints.faults.fault.Fault`.

        :raises pydantic.ValidationError: one of them is not allowed.
        """
        fault = Fault.model_validate({"action": action, **values})
        number: int = self._call(lambda: self._injector.begin(fault))
        return number

    def end(self, number: int) -> None:
        """End a fault, by the number that ``inject`` returned."""
        self._call(lambda: self._injector.faults.end(number))

    def clear(self) -> None:
        """End all faults."""
        self._call(self._injector.faults.clear)

    def seen(self, api: str | None = None) -> list[Seen]:
        """Return all requests and responses so far, or those of one API, such as "Fetch"."""
        return [seen for seen in list(self._recorder.seen) if api in (None, seen.api)]

    def wait_seen(self, condition: Callable[[list[Seen]], bool], seconds: float = 20.0) -> None:
        """Wait until the messages so far satisfy a condition.

        :raises LabError: they do not within so many seconds.
        """
        end = time.monotonic() + seconds
        while not condition(self.seen()):
            if time.monotonic() > end:
                raise LabError(f"what was waited for was not seen within {seconds:g} s")
            time.sleep(_LOOK_SECONDS)

    def _call(self, work: Callable[[], Any]) -> Any:
        """Do something in the lab's thread; return what came of it.

        Trio's own way (trio.from_thread) refuses callers that run Trio themselves.

        :raises LabError: the lab has ended.
        """
        assert self._token is not None
        done: Future[Any] = Future()

        def settle() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        try:
            self._token.run_sync_soon(settle)
            return done.result(_ANSWER_SECONDS)
        except (trio.RunFinishedError, TimeoutError):
            raise LabError(f"the lab has ended: {self._failed or 'it was left'}") from None

    def _run(self) -> None:
        try:
            for left in reversed(range(_STARTS)):
                if self._try(may_be_taken=left > 0):
                    return
        except BaseException as error:
            self._failed = _leaf(error)
            self._started.set()

    def _try(self, *, may_be_taken: bool) -> bool:
        """Serve until the lab is left; false where another process took its ports meanwhile."""
        self._base = _free_base(1 + len(self._cluster.brokers))
        taken = False
        try:
            trio.run(self._serve)
        except* ListenError:
            if not may_be_taken:
                raise
            taken = True
        return not taken

    async def _serve(self) -> None:
        self._scope = trio.CancelScope()
        self._token = trio.lowlevel.current_trio_token()
        brokers = {node: Address(*address) for node, address in self._cluster.brokers.items()}
        # Ids may be far apart.
        ports = {node: self._base + 1 + place for place, node in enumerate(brokers)}
        local = LocalSettings(
            bootstrap=tuple(brokers.values()),
            listen=Address(_HOST, self._base),
            ports=ports,
        )
        if self._like is not None:
            entered = {"upstream_tls": self._like.upstream_tls, "sasl": self._like.sasl}
            local = local.model_copy(update=entered)
        settings = Settings(
            routes=tuple(
                RouteSettings(
                    listen=Address(_HOST, ports[node]), upstream=at, name=f"broker-{node}"
                )
                for node, at in brokers.items()
            ),
            hold=self._hold,
            subscription=SubscriptionSettings(poll_interval_ms=1000),
            # What a client does with hints is to be found out.
            clients=(ClientSettings(name="*", uses=("produce", "fetch")),),
            log=LogSettings(level="error"),
        )
        with self._scope:
            await app.hold(settings, Found(local, brokers, stage=self._injector), self._started.set)


def _leaf(error: BaseException) -> BaseException:
    """Return the error's message. Trio groups what its tasks raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _free_base(span: int) -> int:
    for _ in range(_ATTEMPTS):
        base = _chance.choice(_PORTS[: len(_PORTS) - span])
        if all(_is_free(port) for port in range(base, base + span)):
            return base
    raise ListenError(f"no {span} free ports in a row from {_PORTS[0]} to {_PORTS[-1]}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True
