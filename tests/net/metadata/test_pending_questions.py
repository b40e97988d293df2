"""Questions that wait until a connection is free."""

from leader_hints.net.metadata.pending_questions import PendingQuestions
from tests.harness.lines import lines_of


async def test_questions_add_up_until_they_are_taken() -> None:
    questions = PendingQuestions()
    questions.add(["a"], {("a", 0): 5})
    questions.add(["b"], {("a", 0): 6, ("b", 1): 7}, identity=True)
    questions.add(everything=True)
    taken = questions.take()
    assert [*taken.topics] == ["a", "b"]
    assert taken.epochs == {("a", 0): 6, ("b", 1): 7}
    assert (taken.everything, taken.identity) == (True, True)


async def test_questions_that_were_taken_wait_no_more() -> None:
    questions = PendingQuestions()
    questions.add(["a"], {("a", 0): 5}, everything=True, identity=True)
    questions.take()
    assert questions.take() == ({}, {}, False, False)


async def test_of_very_many_epochs_some_are_taken_at_once_the_first_ones_first() -> None:
    questions = PendingQuestions()
    epochs = {("t", partition): 5 for partition in range(1200)}
    questions.add(["a"], epochs)
    first = questions.take()
    assert ([*first.topics], [*first.epochs]) == (["a"], [*epochs][:500])
    # Others come in between, and what was asked is asked again behind the rest.
    questions.add(["b"], {("t", 0): 6, ("t", 1199): 6})
    assert questions.due.is_set()
    second, third = questions.take(), questions.take()
    assert ([*second.topics], [*second.epochs]) == (["b"], [*epochs][500:1000])
    assert third.epochs == {("t", p): 5 for p in range(1000, 1199)} | {
        ("t", 1199): 6,
        ("t", 0): 6,
    }
    assert not questions.due.is_set()
    assert questions.take() == ({}, {}, False, False)


async def test_so_are_very_many_topics_unless_all_are_asked_for() -> None:
    questions = PendingQuestions()
    topics = [f"t{number}" for number in range(5000)]
    questions.add(topics)
    assert [*questions.take().topics] == topics[:2000]
    assert questions.due.is_set()
    questions.add(topics[:1])
    assert [*questions.take().topics] == topics[2000:4000]
    assert [*questions.take().topics] == [*topics[4000:], "t0"]
    assert not questions.due.is_set()
    questions.add(topics)
    questions.add(everything=True)
    assert questions.take().everything
    assert not questions.due.is_set()
    assert questions.take() == ({}, {}, False, False)


class _Partition(tuple[str, int]):
    """One of which lines tell how often a dictionary has taken it, or looked for it."""

    def __hash__(self) -> int:
        return super().__hash__()


async def test_what_waits_on_costs_nothing() -> None:
    """Of 200,000 epochs each question copied the rest: 26 to 31 ms of one step."""
    questions = PendingQuestions()
    questions.add(epochs={_Partition(("t", partition)): 5 for partition in range(20_000)})
    assert lines_of(questions.take) < 6 * 500
    assert len(questions.take().epochs) == 500


async def test_the_connection_is_due_while_questions_wait() -> None:
    questions = PendingQuestions()
    assert not questions.due.is_set()
    questions.add(["a"])
    assert questions.due.is_set()
    questions.take()
    assert not questions.due.is_set()


async def test_it_is_looked_at_without_a_question() -> None:
    questions = PendingQuestions()
    questions.wake()
    assert questions.due.is_set()
    assert questions.take() == ({}, {}, False, False)


async def test_topics_are_taken_in_the_order_in_which_they_came() -> None:
    questions = PendingQuestions()
    topics = [f"t{number * 7 % 20}" for number in range(20)]
    for topic in topics:
        questions.add([topic, topics[0]])
    assert [*questions.take().topics] == topics
