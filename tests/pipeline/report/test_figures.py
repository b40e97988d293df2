"""What is drawn."""

import re

import pytest

from leader_hints_report.report import figures, listings
from leader_hints_report.report.drawing import Ink
from tests.pipeline.report.samples import make_fleet, make_numbers, row

_ALL = (
    figures.recovery_curves,
    figures.day_trend,
    figures.hour_heat,
    figures.incident_timeline,
    figures.broker_heat,
    figures.hint_coverage,
    figures.readiness_bars,
)


def _texts(svg: str) -> list[str]:
    return re.findall(r"<text [^>]*>([^<]*)</text>", svg)


@pytest.mark.parametrize("draw", _ALL)
def test_without_rows_nothing_is_drawn(draw: figures.DrawNumbers) -> None:
    assert draw(make_numbers()) is None


@pytest.mark.parametrize("draw", _ALL)
def test_colours_are_the_pages_and_ids_are_its_own(draw: figures.DrawNumbers) -> None:
    drawing = draw(make_fleet())
    assert drawing is not None
    ids = [set(re.findall(r' id="([^"]*)"', svg)) for svg in drawing]
    assert not ids[0] & ids[1]
    for svg in drawing:
        # Hatches are patterns of its own.
        used = set(re.findall(r"(?:fill|stroke): (?!url\(#)([^;\"]*)", svg))
        assert used <= {f"var({ink.variable})" for ink in Ink} | {"none"}
        assert re.search(r'role="img" aria-label="[^"]+"', svg)


def test_curves_are_distinguished_without_colours() -> None:
    drawing = figures.recovery_curves(make_fleet())
    assert drawing is not None
    lines = re.findall(r'style="fill: none; ([^"]*)var\(--with(?:out)?\)([^"]*)"', drawing.wide)
    assert {"stroke-dasharray" in before + after for before, after in lines} == {True, False}


def test_a_single_recovery_is_drawn() -> None:
    points = [
        row(listings.CURVE, api="Fetch", hinted=True, percent=percent, recovery_ms=0.0)
        for percent in range(101)
    ]
    drawing = figures.recovery_curves(make_numbers(recovery_curve=points))
    assert drawing is not None
    assert "Fetch" in _texts(drawing.wide)


def test_the_median_and_the_99th_percentile_are_marked() -> None:
    drawing = figures.recovery_curves(make_fleet())
    assert drawing is not None
    for svg in drawing:
        marked = [text for text in _texts(svg) if re.match(r"p(50|99) ", text)]
        assert len(marked) == 2 * 4
        assert "p50 48.2 ms" in marked


def test_heat_has_the_dearest_brokers_and_classes_that_fit() -> None:
    rows = [
        row(listings.BROKER_HOURS, cluster="c", node=node, hour=3, lost_ms=10.0 ** (6 - node / 10))
        for node in range(50)
    ]
    drawing = figures.broker_heat(make_numbers(broker_hours=rows))
    assert drawing is not None
    texts = _texts(drawing.wide)
    assert "broker 29" in texts
    assert "broker 30" not in texts
    # The first thirty lost from 1.26 s to 16.7 min.
    assert {"to 5 s", "to 20 s", "to 1 min", "to 5 min", "above 5 min"} <= set(texts)


def test_one_hour_is_a_heat_map_too() -> None:
    rows = [row(listings.HOURS, day="2026-01-02", hour=3, lost_ms=1000.0)]
    drawing = figures.hour_heat(make_numbers(hours=rows))
    assert drawing is not None
    assert {"01-02", "to 1 s", "above 1 s"} <= set(_texts(drawing.wide))


def test_days_without_a_row_have_a_place_in_the_heat_map_and_the_trend() -> None:
    for draw in (figures.hour_heat, figures.day_trend):
        drawing = draw(make_fleet())
        assert drawing is not None
        assert {"01-01", "01-02", "01-03"} <= set(_texts(drawing.wide))


def test_the_trend_names_what_each_day_lost() -> None:
    drawing = figures.day_trend(make_fleet())
    assert drawing is not None
    names = {"with a hint", "only observed", "missed", "could take none"}
    assert {"1.17 min", "3.5 min"} | names <= set(_texts(drawing.wide))
    assert {"1 min", "2 min", "3 min"} <= set(_texts(drawing.narrow))


def test_brokers_that_cost_nothing_are_not_drawn() -> None:
    rows = [row(listings.BROKER_HOURS, lost_ms=None), row(listings.BROKER_HOURS, lost_ms=0.0)]
    assert figures.broker_heat(make_numbers(broker_hours=rows)) is None


def test_coverage_has_the_versions_with_the_most_errors() -> None:
    rows = [
        row(listings.COVERAGE, software="s", software_version=f"{number}", api="Fetch")
        for number in range(25)
    ]
    drawing = figures.hint_coverage(make_numbers(coverage=rows))
    assert drawing is not None
    for svg in drawing:
        texts = _texts(svg)
        assert "Fetch s 19" in texts
        assert "Fetch s 20" not in texts


def test_bars_say_which_share_was_missed_and_which_could_take_none() -> None:
    told = {"errors": 100, "given": 50, "would_give": 5, "cannot": 30}
    rows = [row(listings.COVERAGE, software="s", api="Fetch", **told)]
    drawing = figures.hint_coverage(make_numbers(coverage=rows))
    assert drawing is not None
    texts = _texts(drawing.wide)
    assert {"50 %", "15 %", "30 %", "missed", "could take none"} <= set(texts)
    # A number in a narrow part could not be read.
    assert "5 %" not in texts


def test_software_of_which_the_most_clients_are_refused_comes_first() -> None:
    refused, in_part, served = listings.VERDICTS
    rows = [
        row(listings.READINESS, software=software, software_version="", verdict=verdict, clients=n)
        for software, verdict, n in (
            ("a", served, 9000),
            ("b", in_part, 1),
            ("c", refused, 1),
            ("c", served, 3),
            ("d", refused, 2),
        )
    ]
    drawing = figures.readiness_bars(make_numbers(readiness=rows))
    assert drawing is not None
    names = [text for text in _texts(drawing.narrow) if "(" in text]
    assert names == ["d (2 clients)", "c (4 clients)", "b (1 client)", "a (9,000 clients)"]
    assert {"25 %", "75 %"} <= {*_texts(drawing.wide)}
