"""The built site: strictly built, complete, and reading it fetches nothing from elsewhere."""

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import DOCS
from tests.harness.browser import dom_of

_ROOT = DOCS.parent
_REPOSITORY = "https://git.example.com/kafka-leader-hints"
#: Attributes whose address a browser fetches by itself, by element. Links (a) are for people.
_FETCHED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}


class _Fetched(HTMLParser):
    """Gathers what a page has its browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = _FETCHED.get(tag, ())
        self.addresses += [value for name, value in attrs if name in wanted and value]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"REPOSITORY_URL": _REPOSITORY}
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The URL at which the site is served."""
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_it_has_every_page(site: Path) -> None:
    pages = {file.relative_to(DOCS).with_suffix(".html") for file in DOCS.rglob("*.md")}

    assert pages <= {file.relative_to(site) for file in site.rglob("*.html")}


def test_each_page_has_the_version_and_the_repository(site: Path) -> None:
    ends = f'kafka-leader-hints {version("kafka-leader-hints")} · <a href="{_REPOSITORY}">'

    for page in DOCS.rglob("*.md"):
        built = site / page.relative_to(DOCS).with_suffix(".html")
        assert ends in built.read_text(encoding="utf-8"), page


def test_it_carries_the_files_that_pages_link_to(site: Path) -> None:
    carried = {file.relative_to(site / "files") for file in (site / "files").rglob("*.*")}

    assert Path("config/leader-hints.yaml") in carried
    for file in carried:
        assert (site / "files" / file).read_bytes() == (_ROOT / file).read_bytes()
        name = f"files/{file}"
        assert any(name in page.read_text(encoding="utf-8") for page in site.rglob("*.html")), name


def test_no_page_and_no_style_names_an_asset_of_others(site: Path) -> None:
    for file in site.rglob("*.html"):
        page = _Fetched()
        page.feed(file.read_text(encoding="utf-8"))
        assert page.addresses, file
        outside = [address for address in page.addresses if urlsplit(address).netloc]
        assert not outside, file
    for file in site.rglob("*.css"):
        style = file.read_text(encoding="utf-8").replace("https:", "http:")
        assert not any(f"{start}http:" in style for start in ("url(", 'url("', "@import ")), file
    for file in site.rglob("*.svg"):
        markup = file.read_text(encoding="utf-8")
        assert 'href="http' not in markup, file
        assert "<script" not in markup, file


@pytest.mark.parametrize("page", ["index.html", "compatibility.html"])
def test_a_browser_that_reads_it_asks_nobody_else(page: str, served: str, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    dom = dom_of(f"{served}/{page}", tmp_path / "chromium", f"--log-net-log={log}")

    asked = _asked_by(served, log)
    assert 'class="js' in dom  # its scripts ran
    assert any(address.endswith(".js") for address in asked)
    assert all(address.startswith(f"{served}/") for address in asked), asked


def _asked_by(origin: str, log: Path) -> list[str]:
    """The addresses that pages of ``origin`` asked for; the browser's own talk has no origin."""
    written = json.loads(log.read_text(encoding="utf-8"))
    start = written["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    begun = (event.get("params", {}) for event in written["events"] if event["type"] == start)
    return [request["url"] for request in begun if request.get("initiator") == origin]
