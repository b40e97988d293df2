"""Raw latencies of the records that a producer sent, in the form that `leader-hints-report kip951`
reads: see pipeline/leader_hints_report/kip951/samples.py."""

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path

#: When a record was sent, in seconds since 1970, and its latency in milliseconds.
Latency = tuple[float, float]


def write_latencies(
    file: Path, arm: str, run: int, latencies: Iterable[Latency], record_bytes: int
) -> None:
    """Write one run of an arm to ``file``, which is replaced; gzip-compressed."""
    with gzip.open(file, "wt", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["arm", "run", "sent_ms", "latency_ms", "bytes"])
        writer.writerows(
            [arm, run, f"{sent * 1000:.3f}", f"{latency_ms:.3f}", record_bytes]
            for sent, latency_ms in latencies
        )
