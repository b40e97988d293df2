"""What the box says: what happened, what it cost, what to do first."""

import pytest

from leader_hints_report.report import listings
from leader_hints_report.report.advice import Advice, advise
from leader_hints_report.report.listings import Row, Value
from tests.pipeline.report.samples import make_numbers, row

_COST: dict[str, Value] = {
    "days": 2,
    "episodes": 100,
    "hinted": 40,
    "observed": 30,
    "missed": 20,
    "cannot": 10,
    "errors": 150,
    "lost_ms": 20_000.0,
    "lost_day_ms": 10_000.0,
    "lost_low_ms": 8_000.0,
    "lost_high_ms": 12_000.0,
    "unseen": 3,
    "reach_day": 15.0,
    "gain_day_ms": 3_000.0,
    "gain_low_ms": 2_000.0,
    "gain_high_ms": 4_000.0,
    "forecast_n": 30,
    "forecast_bare": 0,
}


def _software(name: str, version: str, **more: Value) -> Row:
    none: dict[str, Value] = {"cannot": 0, "gain_day_ms": None, "upgrade_day_ms": None}
    none |= {"upgrade_to": "", "uses": "", "raised": ""}
    return row(listings.SOFTWARE, software=name, software_version=version, **(none | more))


def _advise(cost: dict[str, Value] | None = None, **rows: list[Row]) -> Advice:
    whole = row(listings.COST, **(_COST | (cost or {})))
    return advise(make_numbers(**({"cost": [whole]} | rows)))


def _text(lines: list[str]) -> str:
    return "\n".join(lines)


def test_without_errors_there_is_nothing_to_do() -> None:
    told = advise(make_numbers(days=[row(listings.DAYS, moved=5)]))
    assert told.happened[0] == "5 leader moves in 0 incidents on 1 day."
    assert "No client" in told.happened[1]
    assert told.cost == ["Nothing that was measured."]
    assert told.steps == []


def test_it_says_what_happened_and_what_it_cost_a_day() -> None:
    incidents = [row(listings.INCIDENTS, kind=kind) for kind in ("roll", "failure", "roll")]
    saved: dict[str, Value] = {"saved_ms": 4e4, "saved_low_ms": 2e4, "saved_high_ms": 6e4}
    told = _advise(
        days=[row(listings.DAYS, moved=7), row(listings.DAYS, moved=None)],
        incidents=incidents,
        coverage=[row(listings.COVERAGE, **saved), row(listings.COVERAGE, saved_ms=None)],
    )
    assert told.happened == [
        "7 leader moves in 3 incidents on 2 days (roll 2, failure 1).",
        "Clients lost a partition 100 times, with 150 errors.",
        "Of these, 40 began with a hint; 30 would have begun with a hint, and were only observed; "
        "20 missed a hint; 10 could take none.",
    ]
    assert told.cost == [
        "Clients waited 10 s (8 s to 12 s) a day for their leaders, all of them together.",
        "Hints saved about 20 s a day (10 s to 30 s).",
    ]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (
            (4_000.0, 3_000.0, 5_000.0),
            "Before 2026-01-05 they waited 10 s (8 s to 12 s) a day, from then on 4 s (3 s to "
            "5 s). That is 6 s less (3.76 s to 8.24 s).",
        ),
        (
            (9_000.0, 8_000.0, 10_000.0),
            "Before 2026-01-05 they waited 10 s (8 s to 12 s) a day, from then on 9 s (8 s to "
            "10 s). That is no clear change.",
        ),
        (None, "2026-01-05 cannot be compared: there are no journals from then on."),
    ],
)
def test_a_change_is_compared_where_its_day_was_given(
    after: tuple[float, float, float] | None, words: str
) -> None:
    parts = {"before": (10_000.0, 8_000.0, 12_000.0), "after": after}
    names = ("lost_day_ms", "lost_low_ms", "lost_high_ms")
    rows = [
        row(listings.BEFORE_AFTER, part=part, **dict(zip(names, of, strict=True)))
        for part, of in parts.items()
        if of is not None
    ]
    numbers = make_numbers(cost=[row(listings.COST, **_COST)], before_after=rows)
    assert words in advise(numbers.model_copy(update={"change_day": "2026-01-05"})).cost
    assert len(advise(numbers).cost) == 1


def test_bytes_between_racks_are_in_it_with_what_would_save_them() -> None:
    parts = {"all": 4e9, "before": 7e9, "after": 1e9}
    rows = [
        row(
            listings.RACKS_A_DAY,
            part=part,
            crossing_bytes=size,
            crossing_price=None if part == "after" else size / 1e8,
            avoidable_bytes=3e9,
            avoidable_price=0.5,
        )
        for part, size in parts.items()
    ]
    numbers = make_numbers(racks_a_day=rows).model_copy(update={"change_day": "2026-01-03"})
    told = advise(numbers)
    assert _text(told.cost).endswith(
        "Between racks consumers read 4 GB for 40.00 a day, 25.0 % of what they read.\n"
        "Before 2026-01-03 that was 7 GB for 70.00 a day, from then on 1 GB."
    )
    (step,) = told.steps
    assert "closest_replica: on" in step.what
    assert step.why == "It would have kept 3 GB for 0.50 a day from crossing racks."
    nothing = [row(listings.RACKS_A_DAY, part="all", avoidable_bytes=0)]
    assert advise(make_numbers(racks_a_day=nothing)).steps == []


def test_what_was_not_measured_is_named() -> None:
    told = _advise(
        {"forecast_bare": 4},
        incidents=[row(listings.INCIDENTS, kind="failure", errors=None)],
        journals=[row(listings.JOURNALS, missing=3, events=997)],
        quarantine=[row(listings.QUARANTINE, lines=2)],
    )
    text = _text(told.unmeasured)
    for words in (
        "1 failure without a seen error",
        "3 episodes whose end was not seen",
        "for 4 of 30 recoveries of the forecast",
        "3 events that the journals lack (0.3 %)",
        "2 lines that were not understood",
        "hints: off",
    ):
        assert words in text


def test_what_gains_most_comes_first() -> None:
    old = _software(
        "apache-kafka-java",
        "2.8.2",
        cannot=9,
        clients=4,
        upgrade_to="3.7",
        upgrade_day_ms=5_000.0,
        upgrade_low_ms=4_000.0,
        upgrade_high_ms=6_000.0,
    )
    unknown = _software("kgo", "1.16", cannot=9, clients=1, upgrade_to="1.17", lost_day_ms=700.0)
    other = _software("sarama", "1.43.0", cannot=9, lost_day_ms=900.0)
    misses = [
        row(listings.MISSES, kind=listings.MISSED, reason="no_endpoint", lost_ms=800.0),
        row(listings.MISSES, kind=listings.TAKES_NONE, reason="not_usable_by_client"),
    ]
    told = _advise(software=[old, unknown, other], misses=misses)
    assert [step.what for step in told.steps] == [
        "Upgrade apache-kafka-java 2.8.2 to 3.7 or newer",
        "Turn hints on where they are only observed (hints: on)",
        "Upgrade kgo 1.16 to 1.17 or newer",
        "See whether another library will do for clients that nothing here helps",
        "See why hints were missed: no_endpoint",
    ]
    assert told.steps[0].why == "4 client ids. It would save about 5 s (4 s to 6 s) a day."
    assert told.steps[1].why == (
        "Forecast: it would reach 15 first errors a day, and save about 3 s (2 s to 4 s) a day."
    )
    assert "1 client id. They lost 700 ms a day." in told.steps[2].why
    assert told.steps[3].why.startswith("sarama 1.43.0: they lost 900 ms a day.")
    assert told.steps[4].why.endswith("At most 400 ms a day.")
    assert [cost.gain for cost in told.costs] == [
        "upgrade to 3.7: 5 s",
        "upgrade to 1.17: not known",
        "if it used hints: not known",
    ]


def test_an_upgrade_for_hints_on_fetch_alone_says_so() -> None:
    old = _software("kafka-python", "2.0.2", cannot=9, clients=1, upgrade_to="3.0", lost_day_ms=7.0)
    told = _advise({"gain_day_ms": None}, software=[old])
    assert [step.what for step in told.steps] == [
        "Upgrade kafka-python 2.0.2 to 3.0 or newer, for hints on Fetch alone"
    ]


def test_hints_that_have_been_turned_on_since_are_not_advised() -> None:
    before = row(listings.DAYS, day="2026-01-01", observed_ms=5.0)
    quiet = row(listings.DAYS, day="2026-01-03", episodes=None, observed_ms=None)
    after = row(listings.DAYS, day="2026-01-02", observed_ms=None)
    assert len(_advise(days=[quiet, before]).steps) == 1
    assert _advise(days=[quiet, after, before]).steps == []


def test_software_that_uses_hints_needs_no_upgrade_for_newer_versions_of_the_protocol() -> None:
    new = _software("apache-kafka-java", "3.9.1", cannot=7, upgrade_day_ms=2_000.0)
    told = _advise(software=[new])
    (step,) = told.steps
    assert "so 7 episodes in old versions of the protocol may come on top." in step.why
    assert told.costs[0].gain == "in newer versions of the protocol: 2 s"


def test_sidecars_know_better_which_clients_use_hints() -> None:
    """By their setting clients."""
    own = _software("my-service", "1", cannot=7, raised="yes")
    removed = _software("apache-kafka-java", "3.9.1", cannot=7, raised="no")
    costs = _advise(software=[own, removed]).costs
    assert [cost.gain for cost in costs] == [
        "in newer versions of the protocol: not known",
        "if it used hints: not known",
    ]


def test_hints_that_would_save_nothing_are_not_advised() -> None:
    for gain in (None, -5.0):
        assert _advise({"gain_day_ms": gain}).steps == []


def test_journals_with_gaps_are_seen_to_first() -> None:
    told = _advise(journals=[row(listings.JOURNALS, missing=50, events=950)])
    assert told.steps[0].what == "Find out why the journals lack events"
    assert told.steps[0].why.startswith("5 % are missing")


def test_names_of_software_are_short_and_printable() -> None:
    told = _advise(software=[_software("x\n" * 90, "1"), _software("", "")])
    assert told.costs[0].software.startswith("x\\nx")
    assert len(told.costs[0].software) == 60
    assert told.costs[1].software == "clients without a name"


def test_only_clients_that_gain_by_settled_errors_are_advised_to_try_them() -> None:
    """sarama never backs off twice, so that a hold only adds to its stall."""
    rows = [
        _software(name, "1.0", cannot=9, lost_day_ms=lost)
        for name, lost in (("aiokafka", 300.0), ("sarama", 900.0))
    ]
    settle, other = _advise(software=rows).steps[-2:]
    assert settle.what == "Try hold.settle for clients that have no version with hints"
    assert settle.why.startswith("aiokafka 1.0: they lost 300 ms a day. In front of ZooKeeper")
    assert "sarama" not in settle.why
    assert other.why.startswith("sarama 1.0: they lost 900 ms a day.")
