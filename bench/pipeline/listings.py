"""How long many journal files take to be listed, and many batches of stored events to be known."""

import shutil
import time
from dataclasses import dataclass
from typing import Final

from bench.pipeline.trials import FOLDER
from leader_hints_report.journal.files import Files
from leader_hints_report.spark_session import begin
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.manifest import Manifest

#: A day of so many sidecars, whose files are of five minutes each.
_SIDECARS: Final = 1000
_FILES_A_DAY: Final = 288
#: Those of a stream that stores one each 15 seconds for a day.
_BATCHES: Final = 5760


@dataclass(frozen=True)
class Listing:
    """Seconds that so many files, or batches, took."""

    count: int
    seconds: float


def measure(master: str) -> dict[str, Listing]:
    """List a journal's files and read the log of batches, each once, by a fresh session.

    :raises ValueError: not all were found.
    """
    folder = FOLDER / "listings"
    shutil.rmtree(folder, ignore_errors=True)
    for sidecar in range(_SIDECARS):
        of_sidecar = folder / "journal" / f"sidecar={sidecar}"
        of_sidecar.mkdir(parents=True)
        for number in range(_FILES_A_DAY):
            (of_sidecar / f"{number}.jsonl").touch()
    session = begin(master, {})
    files = Files(session)
    begun = time.perf_counter()
    found = len(files.found(str(folder / "journal")))
    listed = Listing(found, time.perf_counter() - begun)
    out = str(folder / "out")
    written = Manifest(session, files, out)
    for number in range(_BATCHES):
        written.add(Batch(f"batch-{number}", {"files": number}, [["rest", "2026-03-01"]]))
    begun = time.perf_counter()
    known = len(Manifest(session, files, out).batches)
    read = Listing(known, time.perf_counter() - begun)
    session.stop()
    shutil.rmtree(folder)
    if (found, known) != (_SIDECARS * _FILES_A_DAY, _BATCHES):
        raise ValueError(f"found {found} files and {known} batches")
    return {"journal files listed": listed, "batches read from their log": read}
