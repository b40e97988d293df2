"""Lives worlds on several processes, and tells in the order of their seeds what they broke."""

import multiprocessing
import signal
from collections.abc import Generator, Iterable
from itertools import islice
from multiprocessing.connection import Connection

from tests.world.run import live

#: Forked, so that a mutant which is planted in this process is in theirs as well.
_FORKED = multiprocessing.get_context("fork")


def lived(seeds: Iterable[int], workers: int) -> Generator[tuple[int, str], None, None]:
    """Yield each seed with the first rule that broke in its world, "" for none.

    :raises RuntimeError: a process ended by a defect of the world, which it has printed.
    """
    if workers == 1:
        yield from ((seed, _first_broken(seed)) for seed in seeds)
        return
    readers: list[Connection] = []
    processes = []
    try:
        # What interrupts a fork may be lost: Python ignores exceptions of what it calls at forks.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for number in range(workers):
                reader, writer = _FORKED.Pipe(duplex=False)
                some = islice(seeds, number, None, workers)
                process = _FORKED.Process(target=_work, args=(some, writer), daemon=True)
                process.start()
                processes.append(process)
                readers.append(reader)
                # Else the end of the process would not be seen here.
                writer.close()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for number, seed in enumerate(seeds):
            try:
                yield seed, readers[number % workers].recv()
            except EOFError:
                raise RuntimeError(f"seed {seed}: its process ended") from None
    finally:
        for process in processes:
            # SIGTERM may be ignored, as by whatever started this process.
            process.kill()
            process.join()


def _first_broken(seed: int) -> str:
    broken = live(seed).broken
    return broken[0].rule if broken else ""


def _work(seeds: Iterable[int], results: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal; the first of them ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    for seed in seeds:
        if parent is None or not parent.is_alive():
            break
        results.send(_first_broken(seed))
