"""Nothing lost, nothing doubled, order kept: clients' reports against what the brokers hold."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ConsumerRun, OffsetsRun, Outcome, ProducerRun
from tests.harness.stored import Stored, read_codecs, read_partition


def check_produced(admin: ClusterAdmin, run: ProducerRun) -> None:
    """Check every partition of a producer that has stopped, by what its settings promise.

    The topic must be that producer's alone.
    """
    assert not run.failed, f"{run.name} gave up {len(run.failed)}: {run.failed[:3]}"
    assert run.acked, f"{run.name} had nothing acknowledged"
    for partition in run.spec.partitions:
        acked = sorted(
            (outcome for outcome in run.acked if outcome.partition == partition),
            key=lambda outcome: outcome.seq,
        )
        log = read_partition(
            admin, run.spec.topic, partition, committed_only=run.spec.transaction > 0
        )
        where = f"{run.name} {run.spec.topic}-{partition}"
        if run.spec.transaction:
            _check_exactly_once(where, acked, log)
        elif run.spec.idempotent:
            _check_exactly_once(where, acked, written_last(log) if run.writes_again else log)
        elif run.spec.acks == "0":
            _check_at_most_once(where, acked, log)
        else:
            _check_at_least_once(where, acked, log, truncates=run.spec.acks == "1")


def check_compressed(admin: ClusterAdmin, run: ProducerRun, codec: str) -> None:
    """Check that all that a producer wrote stands compressed with ``codec``."""
    for partition in run.spec.partitions:
        codecs = read_codecs(admin, run.spec.topic, partition)
        assert codecs == {codec}, f"{run.name} {run.spec.topic}-{partition}: {codecs}"


def check_ends(run: OffsetsRun) -> None:
    """Check that no partition's end, as ListOffsets told it, ever went back (KIP-207)."""
    assert run.ends, f"{run.name} got no end"
    for partition in run.spec.partitions:
        ends = [offset for where, offset in run.ends if where == partition]
        _check_never_back(f"{run.name} {run.spec.topic}-{partition}", ends)


def check_consumed(admin: ClusterAdmin, run: ConsumerRun, *, returns: bool = False) -> None:
    """Wait until a consumer that began at the start has all, and check that it is just that.

    ``returns``: a client that may go back to the first record of a leader epoch by itself, as
    librdkafka before 2.8 does (``tests.matrix.returns``). What it then reads again is left out.
    """
    for partition in run.spec.partitions:
        log = read_partition(
            admin, run.spec.topic, partition, committed_only=run.spec.committed_only
        )
        expected = [(record.offset, record.producer, record.seq) for record in log]
        last = expected[-1][0] if expected else -1
        run.wait_consumed(
            lambda records, p=partition, end=last: (
                any(  # type: ignore[misc]
                    record.partition == p and record.offset >= end for record in reversed(records)
                )
                or end < 0
            ),
            f"{run.spec.topic}-{partition} to offset {last}",
        )
        got = [
            (record.offset, record.producer, record.seq)
            for record in run.consumed
            if record.partition == partition
        ]
        if returns:
            got = list(_once(got, log))
        where = f"{run.name} {run.spec.topic}-{partition}"
        assert got == expected, f"{where}: {_difference(expected, got)}"


def _once(
    got: Iterable[tuple[int, str, int]], log: Sequence[Stored]
) -> Iterator[tuple[int, str, int]]:
    """What was consumed, without what was read again from the beginning of an epoch on."""
    pairs = list(itertools.pairwise(log))
    behind = {left.offset: right.offset for left, right in pairs}
    starts = {right.offset for left, right in pairs if left.epoch != right.epoch}
    furthest = before = -1
    for record in got:
        offset = record[0]
        again = offset <= furthest and (offset in starts or offset == behind.get(before))
        before = offset
        if not again:
            furthest = max(furthest, offset)
            yield record


def written_last(log: Sequence[Stored]) -> list[Stored]:
    """A log without the records that their producer wrote again in a later producer epoch.

    librdkafka begins one after OUT_OF_ORDER_SEQUENCE_NUMBER, with or without a proxy, and brokers
    compare no records across producer epochs (``tests.matrix.doubles``). What is there twice
    within one producer epoch stays.
    """
    sessions = {record.seq: record.session for record in log}
    return [record for record in log if record.session == sessions[record.seq]]


def _check_exactly_once(where: str, acked: Sequence[Outcome], log: Sequence[Stored]) -> None:
    stored = [(record.seq, record.offset) for record in log]
    counts = Counter(record.seq for record in log)
    doubled = [record for record in log if counts[record.seq] > 1]
    assert not doubled, f"{where}: more than once in the log: {doubled[:6]}"
    # To a batch that comes a second time a broker may answer no offset, but that it has it.
    where_it_is = dict(stored)
    wanted = [
        (outcome.seq, where_it_is.get(outcome.seq, -1) if outcome.offset == -1 else outcome.offset)
        for outcome in acked
    ]
    assert stored == wanted, f"{where}: {_difference(wanted, stored)}"


def _check_at_most_once(where: str, acked: Sequence[Outcome], log: Sequence[Stored]) -> None:
    sent = {outcome.seq for outcome in acked}
    stored = [record.seq for record in log]
    assert stored, f"{where}: nothing arrived"
    assert set(stored) <= sent, f"{where}: never sent {set(stored) - sent}"
    assert _increases(stored), f"{where}: order or number wrong in {stored}"


def _check_at_least_once(
    where: str, acked: Sequence[Outcome], log: Sequence[Stored], truncates: bool
) -> None:
    # Without idempotence no order is promised: librdkafka may send a batch to the new leader
    # while the one before it still waits for its answer from the old one.
    stored = {record.seq for record in log}
    by_offset = {record.offset: record for record in log}
    last = log[-1] if log else None
    for outcome in acked:
        if outcome.seq not in stored:
            # With acks=1 a new leader may lack what the old one acknowledged alone; then its own
            # records, of a later epoch than the first, stand there, or the log ends with them where
            # they are fewer. Nothing else may be lost.
            instead = by_offset.get(outcome.offset, last)
            explained = truncates and instead is not None and instead.epoch > log[0].epoch
            assert explained, f"{where}: lost {outcome}, there stands {instead}"


def _check_never_back(where: str, ends: Sequence[int]) -> None:
    back = [(left, right) for left, right in itertools.pairwise(ends) if right < left]
    assert not back, f"{where} went back: {back[:3]}"


def _increases(numbers: Sequence[int]) -> bool:
    return all(left < right for left, right in itertools.pairwise(numbers))


def _difference(expected: Sequence[tuple[object, ...]], got: Sequence[tuple[object, ...]]) -> str:
    lacking = Counter(expected) - Counter(got)
    surplus = Counter(got) - Counter(expected)
    if not lacking and not surplus:
        return "all there once, but in another order"
    return f"lacking {_some(lacking)}, too many {_some(surplus)}, of {len(expected)} in all"


def _some(counted: Iterable[object]) -> list[object]:
    return list(counted)[:5]
