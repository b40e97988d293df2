"""The page."""

import re

from leader_hints_report.simulation.arms import Mode, arms
from leader_hints_report.simulation.document import TABLES, Forecast
from leader_hints_report.simulation.page import render
from leader_hints_report.simulation.sweep import sweep
from tests.pipeline.simulation.fleets import small
from tests.pipeline.simulation.test_document import forecast


def test_the_page_needs_nothing_besides_itself_and_has_all_arms() -> None:
    page = render(forecast())
    assert not re.search(r"<script|<link|src=", page)
    assert page.count("<svg ") == 8
    assert page.count("<td>hints, pause_s=600</td>") == len(TABLES) + 2 + 2 * 3
    assert '<p class="note">Note.</p>' in page


def test_the_same_forecast_gives_the_same_page() -> None:
    assert render(forecast()) == render(forecast())


def test_an_event_without_late_records_has_a_page() -> None:
    clients = [{"name": "c", "role": "consumer"}]
    fleet = small(clients=clients)
    of = sweep(arms(fleet, (Mode.NO_PROXY,), ()), [1])
    page = render(Forecast(version=1, fleet=fleet, seeds=[1], arms=of, notes=[]))
    assert page.count("<svg ") == 8


def test_the_page_says_which_arms_its_figures_leave_out() -> None:
    of = forecast()
    many = of.model_copy(update={"arms": [*of.arms] * 4})
    assert "Figures are of the first 12 of 16 arms" in render(many)
    assert "Figures are of" not in render(of)


def test_names_are_text() -> None:
    of = forecast()
    odd = of.model_copy(update={"notes": ["<b>bold</b>"]})
    assert "&lt;b&gt;bold" in render(odd)
