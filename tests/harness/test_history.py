"""The history is read from the logs of brokers of any age."""

from datetime import time

import pytest

from tests.harness.history import Term, terms_in

OLD = (
    "17:32:24.612 [handler-1] INFO Partition - [Partition some-topic-1 broker=2] some-topic-1 "
    "starts at leader epoch 3 from offset 0 with high watermark 0. Previous leader epoch was -1.\n"
)
WITHOUT_IDS = (
    "17:32:24.612 [handler-1] INFO logger - [Broker id=2] Leader some-topic-1 starts at leader "
    "epoch 3 from offset 0 with high watermark 0 ISR [1,2,3] addingReplicas []\n"
)
WITH_IDS = (
    "17:18:02.118 [handler-3] INFO logger - [Broker id=2] Leader some-topic-1 with topic id "
    "Some(9f_mC5E7RxCWJCAezym__w) starts at leader epoch 3 from offset 0 with partition epoch 0\n"
)


@pytest.mark.parametrize("line", [OLD, WITHOUT_IDS, WITH_IDS])
def test_a_term_is_read(line: str) -> None:
    began = time.fromisoformat(line.split()[0])
    other = "17:00:00.000 [main] INFO - of something else [Broker id=2]\n"
    assert terms_in([other + line + other]) == {("some-topic", 1): {3: Term(2, began)}}


def test_what_was_recreated_with_another_leader_has_no_history() -> None:
    other = WITH_IDS.replace("some-topic-1", "some-topic-2")
    terms = terms_in([WITH_IDS + other, WITH_IDS.replace("id=2", "id=3")])
    assert terms.keys() == {("some-topic", 2)}
