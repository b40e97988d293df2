"""Opens the journal that the settings ask for.

Tested in ``tests/mock/test_journal.py``.
"""

import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import trio

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.events import Event
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.route import Route
from leader_hints.errors import ConfigurationError
from leader_hints.net.journal.journal_files import FileSink
from leader_hints.net.journal.journal_writer import JournalWriter
from leader_hints.net.journal.sink import Sink
from leader_hints.observe.journal import CLIENT_ID_PREFIX, Journal, JournalCounters
from leader_hints.observe.metrics import Metrics
from leader_hints.settings.journal import JournalSettings
from leader_hints.settings.settings import Settings

#: What a sidecar's name has no place for, since files are named by it; as in its setting.
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9.-]")


def open_journal(
    settings: Settings,
    routes: Sequence[Route],
    software: ClientSoftware,
    metrics: Metrics,
    emit: Callable[[Event], None],
) -> JournalWriter | None:
    """Return the writer of a new run, ``None`` where no journal is wanted.

    ``software``: the proxy's own.

    :raises ConfigurationError: the journal could never be written.
    """
    wanted = settings.journal
    if wanted.kind == "off":
        return None
    sidecar = wanted.sidecar or _NOT_IN_NAMES.sub("-", socket.gethostname())
    run = uuid4().hex
    sink = _sink(wanted, sidecar, run)
    counters = JournalCounters()
    metrics.count_journal(counters)
    journal = Journal(routes, sidecar, run, lambda: time.time_ns() // 1000)
    writer = JournalWriter(journal, sink, counters, wanted.buffer_bytes, wanted.flush, emit)
    writer.begin(software.name, software.version, settings.hints)
    return writer


def check_journal(wanted: JournalSettings) -> None:
    """Refuse a journal that :func:`open_journal` would; nothing is written.

    :raises ConfigurationError: the journal could never be written.
    """
    if wanted.kind != "off":
        _sink(wanted, "check", uuid4().hex)


def make_sampler(wanted: JournalSettings) -> LatencySampler | None:
    """Return what times exchanges on all routes, ``None`` where none is to be timed."""
    if wanted.kind == "off" or not wanted.sample_latencies:
        return None
    return LatencySampler(wanted.sample_latencies, trio.current_time)


def _sink(wanted: JournalSettings, sidecar: str, run: str) -> Sink:
    return _files(wanted, sidecar, run) if wanted.kind == "files" else _topic(wanted, sidecar, run)


def _files(wanted: JournalSettings, sidecar: str, run: str) -> Sink:
    folder = Path(wanted.path)
    if not folder.is_dir():
        raise ConfigurationError(f"journal.path: {folder} is not a directory; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"journal.path: {folder} cannot be written to by this user")
    if not os.access(folder, os.R_OK):
        # That is done for what is to be finished, and for what is to be removed.
        raise ConfigurationError(f"journal.path: {folder} cannot be listed by this user")
    return FileSink(
        folder,
        sidecar,
        run,
        file_bytes=wanted.file_bytes,
        file_seconds=wanted.file_age,
        kept_bytes=wanted.kept_bytes,
        clock=time.monotonic,
        # With microseconds, so that the files of two runs are in order too.
        stamp=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}",
    )


def _topic(wanted: JournalSettings, sidecar: str, run: str) -> Sink:
    # Imported here: who has no such journal needs no Kafka client in memory.
    from leader_hints.net.journal.journal_topic import KafkaSink, read_properties

    file = wanted.properties_file
    properties = read_properties(Path(file)) if file else {}
    client_id = CLIENT_ID_PREFIX + run
    return KafkaSink(wanted.bootstrap, wanted.topic, client_id, sidecar, properties)
