"""What is drawn."""

import re

import pytest

from leader_hints_report.report import figures, listings
from leader_hints_report.report.drawing import Ink
from tests.pipeline.report.samples import make_fleet, make_numbers, row

_ALL = (
    figures.recovery_curves,
    figures.incident_timeline,
    figures.broker_heat,
    figures.hint_coverage,
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


def test_heat_has_the_dearest_brokers_and_classes_of_ten() -> None:
    rows = [
        row(listings.BROKER_HOURS, cluster="c", node=node, hour=3, lost_ms=10.0 ** (6 - node / 10))
        for node in range(50)
    ]
    drawing = figures.broker_heat(make_numbers(broker_hours=rows))
    assert drawing is not None
    texts = _texts(drawing.wide)
    assert "broker 29" in texts
    assert "broker 30" not in texts
    assert {"to 100 ms", "to 1 s", "to 10 s", "to 1.67 min", "above 1.67 min"} <= set(texts)


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
