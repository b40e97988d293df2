"""A browser sees what a person would see of a bad layout."""

from pathlib import Path

from tests.harness.browser import Browser

_GOOD = """<!doctype html><html><body><p>short</p>
<div class="scroll" style="overflow-x: auto"><div style="width: 3000px">a wide table</div></div>
<svg viewBox="0 0 100 20" aria-label="figure"><text x="5" y="15" font-size="9">in</text></svg>
</body></html>"""
_BAD = """<!doctype html><html><body>
<div style="width: 700px">wider than a phone</div>
<p style="width: 50px; overflow: hidden; white-space: nowrap">hidden to its right</p>
<svg viewBox="0 0 100 20" aria-label="figure"><text x="90" y="15" font-size="9">far out</text>
<text x="10" y="15" font-size="9">one</text><text x="12" y="15" font-size="9">other</text></svg>
<script>console.error("a script failed"); nothing.at.all;</script>
</body></html>"""


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    for name, text in (("good", _GOOD), ("bad", _BAD)):
        (tmp_path / f"{name}.html").write_text(text)
    with Browser(tmp_path / "chromium") as browser:
        good = browser.view((tmp_path / "good.html").as_uri(), 400, dark=False)
        bad = browser.view((tmp_path / "bad.html").as_uri(), 400, dark=False)
        again = browser.view((tmp_path / "good.html").as_uri(), 400, dark=True)
    assert (good.console, good.faults) == (again.console, again.faults) == ([], [])
    assert good.picture.startswith(b"\x89PNG")
    assert len(bad.console) == 2
    faults = "\n".join(bad.faults)
    for words in (
        "the page is 708 of 400 wide",
        "outside: DIV : wider than a phone",
        "cut off: P : hidden to its right",
        "outside of figure: text : far out",
        "over each other in figure: text : one / text : other",
    ):
        assert words in faults
