"""Which replicas were named lately."""

from leader_hints.core.replicas.named_replicas import PAUSE, NamedReplicas


def test_a_replica_may_be_named_again_after_a_pause() -> None:
    named = NamedReplicas()
    named.add("t", 0, 2, 10.0)
    named.add("t", 0, 3, 20.0)
    assert named.lately("t", 0, 20.0) == {2, 3}
    assert named.lately("t", 1, 20.0) == frozenset()
    assert named.lately("t", 0, 10.0 + PAUSE) == {3}
    assert named.lately("t", 0, 20.0 + PAUSE) == frozenset()


def test_it_stays_small() -> None:
    named = NamedReplicas()
    for partition in range(5000):
        named.add("t", partition, 2, 0.0)
    assert named.lately("t", 0, 0.0) == frozenset()
    assert named.lately("t", 4999, 0.0) == {2}
