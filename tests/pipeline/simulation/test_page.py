"""The page."""

import re

from leader_hints_report.simulation.document import TABLES
from leader_hints_report.simulation.page import render
from tests.pipeline.simulation.test_document import forecast


def test_the_page_needs_nothing_besides_itself_and_has_all_arms() -> None:
    page = render(forecast())
    assert not re.search(r"<script|<link|src=", page)
    assert page.count("<svg ") == 8
    assert page.count("<td>hints, pause_s=600</td>") == len(TABLES) + 2 + 2 * 3
    assert '<p class="note">Note.</p>' in page


def test_the_same_forecast_gives_the_same_page() -> None:
    assert render(forecast()) == render(forecast())


def test_names_are_text() -> None:
    of = forecast()
    odd = of.model_copy(update={"notes": ["<b>bold</b>"]})
    assert "&lt;b&gt;bold" in render(odd)
