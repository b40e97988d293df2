"""Hooks of mkdocs: what the site has beside its pages.

Files of the repository that pages link to are carried by the site. So one link leads to a file's
text both where the repository is browsed and on the site. Each page's end has the version, and a
link to the repository where the variable REPOSITORY_URL names one.
"""

import html
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parent
_DOCS = "docs"
#: The site's folder for them.
_CARRIED = "files"
_LINK = re.compile(r"(?<=\]\()(?:\.\./)+[^)#\s]+")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write the version, and where the repository is, below each page.

    mkdocs' own ``repo_url`` would have browsers ask GitHub for figures.
    """
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = html.escape(os.environ.get("REPOSITORY_URL", ""))
    link = f' \u00b7 <a href="{repository}">repository</a>' if repository else ""
    config.copyright = f"{project['name']} {project['version']}{link}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each file that a page links to."""
    for page in [*files.documentation_pages()]:
        for path in _carried(page, page.content_string):
            if files.get_file_from_path(f"{_CARRIED}/{path}") is None:
                files.append(
                    File.generated(config, f"{_CARRIED}/{path}", abs_src_path=str(_ROOT / path))
                )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the site has them."""

    def here(link: re.Match[str]) -> str:
        path = _outside(page.file, link[0])
        if path is None:
            return link[0]
        return posixpath.relpath(f"{_CARRIED}/{path}", posixpath.dirname(page.file.src_uri) or ".")

    return _LINK.sub(here, markdown)


def _carried(page: File, markdown: str) -> Iterator[str]:
    for link in _LINK.findall(markdown):
        path = _outside(page, link)
        if path is not None:
            yield path


def _outside(page: File, link: str) -> str | None:
    """The path in the repository of a file outside the pages' folder, or ``None``: mkdocs itself
    knows what to do with the link, or warns of it."""
    path = posixpath.normpath(posixpath.join(_DOCS, posixpath.dirname(page.src_uri), link))
    if path.startswith((f"{_DOCS}/", "../")) or not (_ROOT / path).is_file():
        return None
    return None if path.endswith(".md") else path
