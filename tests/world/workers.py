"""Lives worlds on several processes, and tells in the order of their seeds what they broke."""

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection, wait

from tests.world.run import live

#: Forked, so that a mutant which is planted in this process is in theirs as well.
_FORKED = multiprocessing.get_context("fork")
#: Worlds that one process lives. Nobody looks for garbage in it, which takes an eighth of the time:
#: all goes with the process.
_LIVES = 50


def lived(seeds: range, workers: int) -> Generator[tuple[int, str], None, None]:
    """Yield each seed with the first rule that broke in its world, "" for none.

    :raises RuntimeError: a process ended by a defect of the world, which it has printed.
    """
    if workers == 1:
        yield from ((seed, _first_broken(seed)) for seed in seeds)
        return
    found: dict[int, str | None] = {}
    shares = [_Share(seeds[number::workers]) for number in range(workers)]
    try:
        for seed in seeds:
            while seed not in found:
                _await(shares, found)
            rule = found.pop(seed)
            if rule is None:
                raise RuntimeError(f"seed {seed}: its process ended")
            yield seed, rule
    finally:
        for share in shares:
            share.end()


class _Share:
    """Seeds for one process after the other. ``reader``: what the present one tells."""

    def __init__(self, seeds: range) -> None:
        self._seeds = seeds
        self._expected: deque[int] = deque()
        self._begin()

    def _begin(self) -> None:
        now, self._seeds = self._seeds[:_LIVES], self._seeds[_LIVES:]
        self._expected.extend(now)
        self.reader, writer = _FORKED.Pipe(duplex=False)
        # What interrupts a fork may be lost: Python ignores exceptions of what it calls at forks.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process = _FORKED.Process(target=_work, args=(now, writer), daemon=True)
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        # Else the end of the process would not be seen here.
        writer.close()

    @property
    def over(self) -> bool:
        """Whether all has been told."""
        return not self._expected

    def read(self) -> tuple[int, str | None]:
        """Return the next seed and what broke, ``None`` in place of that if the process has ended
        too early.
        """
        seed = self._expected.popleft()
        try:
            rule = self.reader.recv()
        except EOFError:
            rule = None
        if not self._expected and self._seeds:
            self.end()
            self._begin()
        return seed, rule

    def end(self) -> None:
        """End the process."""
        # SIGTERM may be ignored, as by whatever started this process.
        self._process.kill()
        self._process.join()
        self.reader.close()


def _await(shares: Sequence[_Share], found: dict[int, str | None]) -> None:
    """Wait until a process has told something, or ended."""
    awaited = [share for share in shares if not share.over]
    ready = wait([share.reader for share in awaited])
    found.update(share.read() for share in awaited if share.reader in ready)


def _first_broken(seed: int) -> str:
    broken = live(seed).broken
    return broken[0].rule if broken else ""


def _work(seeds: range, results: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal; the first of them ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    parent = multiprocessing.parent_process()
    for seed in seeds:
        if parent is None or not parent.is_alive():
            break
        results.send(_first_broken(seed))
