"""The worker processes: they are started, and started again if they end.

Their end is noticed by the end of the channel, and the end of this process by them in the same way.

Tested in ``tests/app/workers/test_front.py``.
"""

import socket
import subprocess  # this very program  # nosec B404
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

import trio

from leader_hints.core.events import Event, TaskFailed, WorkerBegan, WorkerEnded
from leader_hints.core.workers.messages import Begin, FromWorker, Message
from leader_hints.errors import places_of
from leader_hints.net.child_process import ended
from leader_hints.net.workers.channel import Channel
from leader_hints.net.workers.parent_side import ParentSide, Worker

#: Seconds before a worker is started again: at first and at most. It doubles while it ends within
#: the last of these.
_FIRST_PAUSE, _LONGEST_PAUSE, _LASTED = 0.1, 30.0, 60.0
#: Bytes that may wait for a worker. It reads all the time; what is known of 100,000 topics has ten
#: million.
_MOST_QUEUED: Final = 1 << 26
#: Seconds between two looks at a worker, and looks in a row at which it has said nothing: it hangs
#: then, and its links with it. It says its load about every second once it has begun. Before that
#: it reads TLS files, whose disk may hang: the next one may find it well. Looks are counted, and no
#: time: this process may have been stopped itself.
_LOOK: Final = 5.0
_SILENT: Final = 12
_NOT_BEGUN: Final = 24
#: The exit code of a worker that began while a TLS file was broken.
FILES_REFUSED: Final = 3
#: Seconds for a worker to end by itself once its channel has.
_TO_END: Final = 2.0


class WorkerPool:
    """Keeps ``workers`` processes running, each with the ``settings`` (JSON).

    ``command``: what starts one; the number of its descriptor is added. ``serving``: set once all
    of them are ready for the first time. ``ending``: none is started any more. ``processes``: the
    numbers of those that run.
    """

    def __init__(
        self,
        workers: int,
        command: Sequence[str],
        settings: str,
        side: ParentSide,
        emit: Callable[[Event], None],
    ) -> None:
        self._workers = workers
        self._command = command
        self._settings = settings
        self._side = side
        self._emit = emit
        self._begun: set[int] = set()
        self.serving = trio.Event()
        self.ending = False
        self.processes: dict[int, int] = {}

    async def run(self) -> None:
        """Keep them running until cancelled; then end them."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._side.run)
            for number in range(1, self._workers + 1):
                nursery.start_soon(self._keep, number)

    async def _keep(self, number: int) -> None:
        pause = _FIRST_PAUSE
        while not self.ending:
            begun = trio.current_time()
            try:
                await self._serve(number)
            except Exception as error:
                # A defect here, or the system has no room for a process.
                self._emit(TaskFailed(task="workers", traceback=places_of(error)))
            if trio.current_time() - begun >= _LASTED:
                pause = _FIRST_PAUSE
            await trio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _serve(self, number: int) -> None:
        """Have one process serve until it ends."""
        near, far = socket.socketpair()
        channel = Channel(near, _MOST_QUEUED)
        worker = Worker(number, channel.send)
        process = None
        try:
            with far:
                process = await trio.lowlevel.open_process(
                    [*self._command, str(far.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[far.fileno()],
                    # A terminal's signals are this process's.
                    process_group=0,
                )
            self.processes[number] = process.pid
            await self._talk(channel, worker, process.pid)
        finally:
            # Its end is no news while this process ends.
            with trio.CancelScope(shield=True):
                links = await self._side.leave(worker)
                hung = channel.hangs
                channel.close()
                if process is not None:
                    await _end(process, at_once=hung)
                self.processes.pop(number, None)
        late = "it did not read" if worker.ready.is_set() else "it did not begin"
        reason = late if hung else _reason(process.returncode)
        worker.drained.set()
        event = WorkerEnded(worker=number, process=process.pid, links=links, reason=reason)
        self._emit(event)

    async def _talk(self, channel: Channel, worker: Worker, process: int) -> None:
        async with trio.open_nursery() as nursery:

            async def tell() -> None:
                channel.send(Begin(worker.number, self._workers, self._settings))
                await self._side.join(worker)
                await worker.ready.wait()
                self._emit(WorkerBegan(worker=worker.number, process=process))
                self._begun.add(worker.number)
                if len(self._begun) == self._workers:
                    self.serving.set()

            def take(message: Message, _: socket.socket | None) -> None:
                try:
                    self._side.take(worker, cast(FromWorker, message))
                except Exception as error:
                    self._emit(TaskFailed(task="workers", traceback=places_of(error)))

            nursery.start_soon(tell)
            nursery.start_soon(_watch, worker, channel)
            await channel.run(take)
            nursery.cancel_scope.cancel()


async def _watch(worker: Worker, channel: Channel) -> None:
    """Give a worker up that hangs. It may take very long until the messages for it are too many."""
    heard = silent = 0
    while silent < (_SILENT if worker.ready.is_set() else _NOT_BEGUN):
        await trio.sleep(_LOOK)
        before, heard = heard, channel.taken
        silent = silent + 1 if heard == before else 0
    channel.give_up()


async def _end(process: trio.Process, *, at_once: bool) -> None:
    """Wait until a process has ended, or end it."""
    if not at_once:
        with trio.move_on_after(_TO_END):
            await ended(process)
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await ended(process)


def _reason(code: int | None) -> str:
    if code == FILES_REFUSED:
        return "its TLS files cannot be used"
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def worker_command(module: str) -> list[str]:
    """Return the command that runs a module of this program as this process runs."""
    flags = [f"-X{name}" for name in sys._xoptions]
    if sys.flags.isolated:
        flags.append("-I")
    return [sys.executable, *flags, "-m", module]
