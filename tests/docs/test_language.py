"""Words that are not plain English stay out of everything that people read.

The tests read the pages, the example of the settings, the files to deploy, each text in the source
that can be shown (help of commands, descriptions of settings and metrics, log lines, findings and
errors), the help of make, and all docstrings, comments, texts and names, those of tests too.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import DOCS

_ROOT: Final = DOCS.parent
#: What is not written, as a regular expression, and what is written instead. A space stands for any
#: white space; a phrase is found across lines.
BANNED: Final = {
    r"anew": "again; recreated",
    r"mend(s|ed|ing)?": "fix, fixed",
    r"made[- ]up( topic)? ids?": "synthetic topic ids",
    r"ids?( that)?( are| is)? made up": "synthetic topic ids",
    r"makes? (up ids?|(ids?|them|it) up)": "synthesize",
    r"(nothing|none) is made up": "no id is synthesized",
    r"whoever": "a client that, any process that",
    r"(is|are) dear": "is expensive",
    r"(is|are|was|were) told by|told by the effect": "is determined by, is detected from",
    r"nobody leads": "there is no leader",
    r"(stand|stands|stood|standing) (before|in front)": "is in front of",
    r"in office|of its office": "leadership is confirmed",
    r"own words?": "the leader confirms; reported by",
    r"out of (its|his) mind": "is not plausible",
    r"never was": "synthetic",
    r"spared": "exempt",
    r"deaf": "closed for writing",
    r"heed(s|ed|ing)?": "watch",
    r"is no folder": "is not a directory",
    r"make it first": "create it first",
    r"from turning|loop (has )?stood( still)?|stood still": "stalled",
    r"think of ACLs": "review host-based ACLs",
    r"who can upgrade": "if you can upgrade",
    r"what no hint can shorten is": "all figures include ..., which no hint shortens",
    r"all that stands behind": "responses queued behind",
    r"before (each|every|a|the|its|older|legacy|such) brokers?(?! (has|have|is|are|was|can|ends|"
    r"restarts|starts|and|does|answers|begins|advertises?))": "in front of (for place)",
    r"before brokers (of|older|that)": "in front of (for place)",
    r"made of the code": "generated from the code",
    r"in hand": "pending, left",
    r"headway": "progress",
    r"brought (up|down)": "converted to the client's version; lowered",
    r"(goes?|going|pass(es)?)( on)? as (it|they) (is|are)": "is forwarded unchanged",
    r"hears? of|heard of": "learns of",
    r"holes?": "gap; vulnerability",
    r"gone through": "processed",
    r"strangers?": "a client that has not authenticated",
    r"hangs? (at|on|together)": "depends on, belongs together",
    r"a (question|connection|record|client) more": "one more",
    r"as (soon as )?ever": "immediately",
    r"faults? (is|are|was|were)( then)? done": "is injected, is applied",
    r"who leads": "the leader; which broker leads",
    r"to and fro": "back and forth",
    r"(the|a) desk": "the hold queue",
    r"for want of": "because ... is missing",
    r"once in a while": "rarely, from time to time",
    r"in the runs? before": "nothing: figures of other runs belong in a log of tries",
    r"where nothing else is said": "unless the row says otherwise",
    r"wakes? somebody": "wakes a process",
    r"quick ones": "fast checks",
    r"of ours": "the proxy's",
    r"told apart": "distinguished",
    r"tells? (of|nothing|anything|more)|told of": "reports, shows",
    r"(is|are|was|were|be|being) told(?! to)": "is reported; gets",
    r"who (asks|comes|takes|says|sends|reads|gets|gives|knows)": "a client that, a broker that",
}
_PATTERN: Final = {
    re.compile(rf"\b(?:{banned})\b".replace(" ", r"\s+"), re.IGNORECASE): instead
    for banned, instead in BANNED.items()
}
#: Names that the source had before it used those of Kafka, Trio and TCP.
PRIVATE_NAMES: Final = {
    "Desk": "HoldQueue",
    "HoldKeeper": "HoldTimer",
    "Outlook": "ClientSupport",
    "Arrivals": "SelfConnections",
    "FaultStage": "FaultInjector",
    "must_mend": "must_fix",
    "Door": "Connector",
    "Peer": "BrokerPoller",
    "anew": "again, rebuild",
    "deaf": "write_closed",
    "heeding": "wake_on_readable",
    "patient": "probe",
    "spared": "exempt",
    "tally": "counters",
    "told_apart": "labels",
    "witness": "passthrough_scan",
}
#: Names that are promised to users: a former flag, and a key of the check's JSON.
_PROMISED: Final = {
    "commands/batch.py": ("anew",),
    "check/report.py": ("mend",),
    "cli/main.py": ("mend",),
    "tests/real/test_doctor.py": ("mend",),
}
_SOURCES: Final = ("proxy", "pipeline", "bench", "demo", "release", "tests")
#: It has the words themselves.
_THIS: Final = Path(__file__)
_PACKAGES: Final = (_ROOT / "proxy" / "leader_hints", _ROOT / "pipeline" / "leader_hints_report")
#: Sources whose docstrings are shown: as help of a command, or on a page of docs/.
_DOCSTRINGS_SHOWN: Final = (
    "cli",
    "commands",
    "cli.py",
    "settings",
    "core/events.py",
    "check/report.py",
    "check/findings.py",
    "observe/status.py",
)


def pages() -> Iterator[Path]:
    """Iterate over all files that are read as they are."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        yield _ROOT / name
    yield _ROOT / "deploy" / "README.md"
    yield _ROOT / "config" / "leader-hints.yaml"
    yield _ROOT / "Makefile"
    yield _ROOT / "pyproject.toml"
    yield from sorted(DOCS.rglob("*.md"))


#: Other files that people read, by suffix or name.
_OTHERS: Final = (
    *(".yaml", ".yml", ".txt", ".tpl", ".html", ".jinja", ".service"),
    *(".java", ".go", ".js", "Dockerfile", "run"),
)
_FOLDERS: Final = (*_SOURCES, "deploy", "config", ".ci", ".github")


def others() -> Iterator[Path]:
    """Iterate over files that are neither pages nor Python."""
    for folder in _FOLDERS:
        for file in sorted((_ROOT / folder).rglob("*")):
            if file.is_file() and (file.suffix in _OTHERS or file.name in _OTHERS):
                yield file
    yield _ROOT / "Dockerfile"
    yield _ROOT / ".pre-commit-config.yaml"


def sources() -> Iterator[Path]:
    """Iterate over the packages' modules."""
    for package in _PACKAGES:
        yield from sorted(package.rglob("*.py"))


@cache
def found_in(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the words and what to write, for each hit. Code in backticks is not read."""
    hits = []
    prose = re.sub(r"`[^`\n]+`", lambda code: " " * len(code[0]), text)
    prose = re.sub(r"\]\([^)\s]+\)", lambda link: " " * len(link[0]), prose)
    for pattern, instead in _PATTERN.items():
        for hit in pattern.finditer(re.sub(r"\n(#|\s*>)", "\n ", prose)):
            line = prose.count("\n", 0, hit.start()) + 1
            hits.append((line, " ".join(hit[0].split()), instead))
    return hits


def _texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each text of a module that can be shown, with its line; names of one word are none."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = set()
    if not any(f"/{shown}" in str(file).removesuffix(".py") + ".py/" for shown in _shown()):
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if " " in node.value and id(node) not in docstrings:
            yield node.lineno, node.value


def _shown() -> Iterator[str]:
    return (f"{shown}/" for shown in _DOCSTRINGS_SHOWN)


def _report(file: Path, line: int, words: str, instead: str) -> str:
    return f"{file.relative_to(_ROOT)}:{line}: {words!r}; write: {instead}"


def test_pages_are_in_plain_words() -> None:
    hits = [
        _report(file, *hit)
        for file in pages()
        for hit in found_in(file.read_text(encoding="utf-8"))
    ]

    assert not hits, "\n".join(hits)


def test_other_files_are_in_plain_words() -> None:
    hits = [
        _report(file, *hit)
        for file in others()
        for hit in found_in(file.read_text(encoding="utf-8"))
    ]

    assert not hits, "\n".join(hits)


def test_texts_of_the_source_are_in_plain_words() -> None:
    hits = [
        _report(file, first + line - 1, words, instead)
        for file in _files()
        for first, text in _texts(file)
        for line, words, instead in found_in(text)
    ]

    assert not hits, "\n".join(hits)


def _files() -> Iterator[Path]:
    for folder in _SOURCES:
        yield from (file for file in sorted((_ROOT / folder).rglob("*.py")) if file != _THIS)


def _remarks(source: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring and each block of comments, with its first line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)
    first, block = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] == first + block.count("\n") + 1:
            block += f"\n{token.string}"
        else:
            yield first, block
            first, block = token.start[0], token.string
    yield first, block


def test_docstrings_and_comments_are_in_plain_words() -> None:
    hits = [
        _report(file, first + line - 1, words, instead)
        for file in _files()
        for first, text in _remarks(file.read_text(encoding="utf-8"))
        for line, words, instead in found_in(text)
    ]

    assert not hits, "\n".join(hits)


def test_names_are_those_of_the_field() -> None:
    hits = [
        _report(file, token.start[0], token.string, PRIVATE_NAMES[token.string])
        for file in _files()
        for token in tokenize.generate_tokens(
            io.StringIO(file.read_text(encoding="utf-8")).readline
        )
        if token.type == tokenize.NAME
        and token.string in PRIVATE_NAMES
        and token.string not in _promised(file)
    ]

    assert not hits, "\n".join(hits)


def _promised(file: Path) -> tuple[str, ...]:
    of = (names for end, names in _PROMISED.items() if str(file).endswith(end))
    return next(of, ())


def _names(source: str) -> Iterator[tuple[int, str]]:
    """Yield each name that is defined or used, with its line; parts of calls are names too."""
    for node in ast.walk(ast.parse(source)):
        for field in ("name", "id", "attr", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


@cache
def _words_of(name: str) -> str:
    return re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ")


def test_names_are_in_plain_words() -> None:
    hits = [
        _report(file, first, words, instead)
        for file in _files()
        for first, name in _names(file.read_text(encoding="utf-8"))
        if name not in _promised(file)
        for _, words, instead in found_in(_words_of(name))
    ]

    assert not hits, "\n".join(hits)


def test_files_are_named_in_plain_words() -> None:
    hits = [
        _report(file, 0, words, instead)
        for file in (*_files(), *others(), *pages())
        for _, words, instead in found_in(_words_of(file.stem))
    ]

    assert not hits, "\n".join(hits)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class MadeAnew: ...\n", ["Anew"]),
        ("def told_of(): ...\n", ["told of"]),
        ("x.nobody_leads = 1\n", ["nobody leads"]),
        ("f(deaf=True)\n", ["deaf"]),
        ("renewed = 1\n", []),
    ],
)
def test_names_are_read_word_by_word(source: str, found: list[str]) -> None:
    hits = [words for _, name in _names(source) for _, words, _ in found_in(_words_of(name))]

    assert hits == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""Made anew."""\n', ["anew"]),
        ("x = 1  # anew\n", ["anew"]),
        ("# It stands\n# before it.\nx = 1\n", ["stands before"]),
        ('x = "anew"\n', []),
    ],
)
def test_remarks_are_docstrings_and_comments(source: str, found: list[str]) -> None:
    hits = [words for _, text in _remarks(source) for _, words, _ in found_in(text)]

    assert hits == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is made anew.", [(1, "anew")]),
        ("A proxy stands\nbefore it.", [(1, "stands before")]),
        ("one\ntwo\nwhoever", [(3, "whoever")]),
        ("`--anew` and [a link](made-anew.md)", []),
        ("A person amends the new page before it is read.", []),
    ],
)
def test_words_are_found_where_they_are(text: str, found: list[tuple[int, str]]) -> None:
    assert [(line, words) for line, words, _ in found_in(text)] == found


def test_texts_of_the_source_have_help_log_lines_and_findings() -> None:
    texts = {text for file in sources() for _, text in _texts(file)}

    assert any("until SIGTERM or SIGINT" in text for text in texts)
    assert "A route takes connections." in texts
    assert "node {node} advertises {address}, which leads to this route" in texts
    assert not any("Events as log lines" in text for text in texts)
