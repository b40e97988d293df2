from demo.ledger import Ledger


def ledger_with(produced: int) -> Ledger:
    ledger = Ledger(partitions=2)
    for _ in range(produced):
        ledger.next_sequence(0)
    return ledger


def test_sequences_count_for_each_partition() -> None:
    ledger = Ledger(partitions=2)
    assert [ledger.next_sequence(p) for p in (0, 0, 1, 0)] == [0, 1, 0, 2]


def test_acknowledged_but_unread_is_lost() -> None:
    ledger = ledger_with(3)
    for sequence in range(3):
        ledger.acknowledge(0, sequence, now=1.0)
    ledger.read(0, 0, now=1.0)
    ledger.read(0, 2, now=1.0)
    assert (ledger.acknowledged, ledger.lost, ledger.doubled) == (3, 1, 0)


def test_same_sequence_in_another_partition_does_not_hide_a_loss() -> None:
    ledger = ledger_with(1)
    ledger.acknowledge(0, 0, now=1.0)
    ledger.read(1, 0, now=1.0)
    assert ledger.lost == 1


def test_read_but_unacknowledged_is_not_lost() -> None:
    # The record's acknowledgement may still be on its way.
    ledger = ledger_with(1)
    ledger.read(0, 0, now=1.0)
    assert ledger.lost == 0


def test_every_repeated_read_counts() -> None:
    ledger = ledger_with(2)
    for sequence in (0, 1, 1, 1):
        ledger.read(0, sequence, now=1.0)
    assert (ledger.doubled, ledger.disordered) == (2, 0)


def test_reads_out_of_order_count_for_each_partition() -> None:
    ledger = ledger_with(3)
    for partition, sequence in ((0, 0), (0, 2), (1, 0), (0, 1)):
        ledger.read(partition, sequence, now=1.0)
    assert ledger.disordered == 1


def test_watch_waits_for_records_produced_after_it() -> None:
    ledger = ledger_with(2)
    watch = ledger.watch(0)
    ledger.acknowledge(0, 1, now=1.0)
    ledger.read(0, 1, now=1.0)
    ledger.acknowledge(1, 2, now=2.0)
    assert (watch.first, watch.acknowledged_at, watch.read_at) == (2, None, None)
    ledger.acknowledge(0, 3, now=3.0)
    assert not watch.done
    ledger.read(0, 3, now=4.0)
    assert (watch.acknowledged_at, watch.read_at, watch.done) == (3.0, 4.0, True)


def test_watch_keeps_the_first_times() -> None:
    ledger = ledger_with(0)
    watch = ledger.watch(0)
    for now in (5.0, 6.0):
        ledger.acknowledge(0, 0, now)
        ledger.read(0, 0, now)
    assert (watch.acknowledged_at, watch.read_at) == (5.0, 5.0)


def test_flowing_needs_every_partition() -> None:
    ledger = ledger_with(2)
    ledger.read(0, 0, now=1.0)
    assert not ledger.flowing(1)
    ledger.read(1, 0, now=1.0)
    assert ledger.flowing(1)
    assert not ledger.flowing(2)
