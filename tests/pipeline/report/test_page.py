"""The page: whole in itself, and safe whatever names the network gave."""

import re
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest

from leader_hints_report.kip951.document import make_document
from leader_hints_report.report import listings
from leader_hints_report.report.listings import Kind, Numbers, Rows
from leader_hints_report.report.page import make_page
from tests.harness.browser import Browser, dom_of
from tests.pipeline.report.samples import make_fleet, make_numbers, row

_HOSTILE = (
    "\u65e5</td></svg><script>alert(1)</script><img src=x onerror=alert(2)>"
    "$\\frac{$\u202e\x1b[31m\"'&"
)


class _Seen(HTMLParser):
    """What elements and addresses a document has, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loaded: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "srcset", "poster", "data") or (
                name.endswith("href") and tag != "a" and not str(value).startswith("#")
            ):
                self.loaded.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.handlers.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text += data


def _hostile_fleet() -> Numbers:
    """Every text of every listing is hostile."""
    return Numbers(
        listings={
            name: Rows(
                rows=tuple(
                    row_
                    | {
                        column.name: _HOSTILE
                        for listing in listings.LISTINGS
                        if listing.name == name
                        for column in listing.columns
                        if column.kind is Kind.TEXT and column.name not in ("api", "kind", "part")
                    }
                    for row_ in rows.rows
                )
            )
            for name, rows in make_fleet().listings.items()
        }
    )


@pytest.fixture(scope="module")
def page() -> str:
    return make_page(make_fleet(), make_document(None))


@pytest.fixture(scope="module")
def hostile_page() -> str:
    with warnings.catch_warnings():
        # Not even of letters that no font of this machine has is there a word on the terminal.
        warnings.simplefilter("error")
        return make_page(_hostile_fleet(), make_document(None))


def test_it_loads_nothing_and_has_no_script(page: str) -> None:
    seen = _Seen(page)
    assert seen.loaded == []
    assert not seen.tags & {"script", "link", "iframe", "object", "embed", "img", "base"}
    assert not re.search(r"url\((?!#)|@import", page)
    assert "default-src 'none'" in page
    # Placeholders of colours are all replaced.
    assert "#fe00" not in page


def test_each_listing_and_figure_is_there_with_an_explanation(page: str) -> None:
    seen = _Seen(page)
    for listing in listings.LISTINGS:
        if listing is not listings.CURVE:
            assert listing.title in seen.text, listing.title
    assert page.count("<svg ") == 2 * 7
    assert page.count("<figure>") == page.count("<figcaption>")
    for figure in page.split("<figure>")[1:]:
        words = re.search(r"<figcaption><p>(.*?)</p>", figure, re.DOTALL)
        assert words is not None
        assert len(words[1]) > 40
    assert "87.2 %" in seen.text


def test_the_tiles_add_clusters_up(page: str) -> None:
    text = re.sub(r"<[^>]*>", " ", page.partition('id="tiles"')[2].partition("</dl>")[0])
    assert re.search(r"leader moves\s+10\u202f368\s", text)
    assert re.search(r"of these with a hint\s+70\.0 %", text)
    assert re.search(r"saved by hints, estimate\s+3 min \(2 min to 4 min\)", text)


def test_incidents_open_to_topics_clients_and_brokers(page: str) -> None:
    opened = page.split('class="incidents"')[1].split("</details>\n</details>")[0]
    assert "roll, " in opened.split("</summary>")[1]
    for part in ("topic", "client", "broker"):
        assert f">{part}</th>" in opened
        assert f"{part}-2" in opened


def test_the_box_comes_before_all_figures(page: str) -> None:
    head, _ = page.split("<main>")
    titles = re.findall(r"<h2>(.*?)</h2>", head)
    assert titles == ["What happened", "What it cost", "What to do first"]


def test_hostile_names_stay_text(hostile_page: str) -> None:
    seen = _Seen(hostile_page)
    assert not seen.tags & {"script", "img"}
    assert seen.handlers == []
    assert "\x1b" not in hostile_page
    assert "\u202e" not in hostile_page
    # It is shown whole, with what does not print as an escape.
    assert "<script>alert(1)</script>" in seen.text
    assert "\\u202e\\x1b[31m" in seen.text


def test_without_rows_it_says_so() -> None:
    page = make_page(make_numbers(), make_document(None))
    assert 'id="empty"' in page
    assert "<svg " not in page
    assert "87.2 %" in page


def test_days_that_were_asked_for_are_named() -> None:
    asked = {"first_day": "2026-01-02", "last_day": "2026-01-09"}
    for numbers in (make_numbers(), make_fleet()):
        page = make_page(numbers.model_copy(update=asked), make_document(None))
        assert "days from 2026-01-02 to 2026-01-09" in page
    assert "asked for" not in make_page(make_fleet(), make_document(None))


def test_a_part_without_rows_says_so() -> None:
    numbers = make_numbers(incidents=[row(listings.INCIDENTS, kind="roll")])
    text = _Seen(make_page(numbers, make_document(None))).text
    assert "Recoveries: no data." in text
    assert "none" in text


def test_no_more_rows_than_a_person_reads() -> None:
    rows = [row(listings.TOPICS, topic=f"topic-{number}") for number in range(60)]
    numbers = Numbers(listings={"topics": Rows(rows=tuple(rows), more=True)})
    page = make_page(numbers, make_document(None))
    assert "topic-49" in page
    assert "topic-50" not in page
    assert "50 of 60 rows" in page
    assert "The pipeline's tables have more." in page.replace("&#39;", "'")


def test_former_names_of_columns_are_in_the_files_alone(page: str) -> None:
    (former,) = [
        column.name for listing in listings.LISTINGS for column in listing.columns if column.former
    ]
    assert former == "told"
    assert "Numbers without an event" in page
    assert "The former name" not in page


def test_the_same_numbers_give_the_same_page() -> None:
    rows = {"coverage": [row(listings.COVERAGE)], "incidents": [row(listings.INCIDENTS)]}
    first, second = (make_page(make_numbers(**rows), make_document(None)) for _ in range(2))
    assert first == second


def test_a_browser_opens_it_and_runs_nothing(hostile_page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(hostile_page, "utf-8")
    dom = dom_of(file.as_uri(), tmp_path / "chromium")
    assert _Seen(dom).tags.isdisjoint({"script", "img"})
    assert dom.count("<svg ") == 2 * 7
    assert dom.rstrip().endswith("</html>")


def test_nothing_is_cut_off_on_screens_and_phones_light_and_dark(
    page: str, hostile_page: str, tmp_path: Path
) -> None:
    with Browser(tmp_path / "chromium") as browser:
        for name, text in (("page", page), ("hostile", hostile_page)):
            file = tmp_path / f"{name}.html"
            file.write_text(text, "utf-8")
            for width in (1280, 400):
                light, dark = (
                    browser.view(file.as_uri(), width, dark=dark) for dark in (False, True)
                )
                for view in (light, dark):
                    assert (view.console, view.faults) == ([], []), (name, width)
                assert light.picture != dark.picture
