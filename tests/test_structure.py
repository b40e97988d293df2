"""The shape of the code base: sizes of folders, classes and functions; no circle of imports."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_PACKAGES = [ROOT / "proxy" / "leader_hints", ROOT / "pipeline" / "leader_hints_report"]
_FILES = [file for package in _PACKAGES for file in sorted(package.rglob("*.py"))]
_FOLDERS = sorted({file.parent for file in _FILES})
#: It has one file for each Kafka API.
_LARGE = _PACKAGES[0] / "apis"
#: The rest are found by their names.
_SUBJECTS = [folder for folder in _FOLDERS if folder not in (_PACKAGES[0], _LARGE)]
_TESTS = {_PACKAGES[0]: ROOT / "tests", _PACKAGES[1]: ROOT / "tests" / "pipeline"}
_MIRRORED = [file for file in _FILES if file.name != "__init__.py"]
_MOST_FILES = 20
_MOST_LINES = 60
_MOST_METHODS = 20
#: Assigned to self, or annotated in the class.
_MOST_ATTRIBUTES = 15
#: What a larger class says in its docstring or a comment.
_REASON = re.compile(r"\bLarge because \w+")


def _name(file: Path) -> str:
    package = next(package for package in _PACKAGES if file.is_relative_to(package))
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_MODULES = {_name(file): file for file in _FILES}


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _below_root(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _imported(file: Path) -> Iterator[str]:
    """Iterate over the modules that ``file`` imports, for its types too."""
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in _MODULES else node.module


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {
        name: {other for other in _imported(file) if other in _MODULES and other != name}
        for name, file in _MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _unnamed_files(folder: Path) -> set[str]:
    """Return the files that a folder's docstring does not name; it says which bugs are there."""
    text = ast.get_docstring(_parsed(folder / "__init__.py")) or ""
    names = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    unnamed = {name for name in names if not re.search(rf"\b{name}\b", text)}
    return unnamed if re.search(r"^Bugs about", text, re.MULTILINE) else {"Bugs about", *unnamed}


def test_a_folder_says_which_bugs_are_in_it_and_names_its_files() -> None:
    lacking = {_below_root(folder): _unnamed_files(folder) for folder in _SUBJECTS}
    assert {folder: names for folder, names in lacking.items() if names} == {}


def _is_tested(file: Path) -> bool:
    """Return whether a file has a mirrored test, and the test that it names, if it names one."""
    package = next(package for package in _PACKAGES if file.is_relative_to(package))
    below = file.relative_to(package)
    mirrored = _TESTS[package] / below.with_name(f"test_{file.name}")
    named = re.search(r"^Tested in ``(.+)``\.$", file.read_text(), re.MULTILINE)
    return (ROOT / named[1]).exists() if named else mirrored.exists()


def test_a_file_has_a_mirrored_test_or_names_its_test() -> None:
    assert [_below_root(file) for file in _MIRRORED if not _is_tested(file)] == []


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    for folder in _FOLDERS:
        files = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        assert folder == _LARGE or len(files) <= _MOST_FILES, folder
        assert ast.get_docstring(_parsed(folder / "__init__.py")), folder


def _long_functions(tree: ast.Module) -> dict[str, int]:
    """Return how many lines each function has that has too many."""
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    return {name: lines for name, lines in lengths.items() if lines > _MOST_LINES}


def test_functions_are_short() -> None:
    long = {_below_root(file): _long_functions(_parsed(file)) for file in _FILES}
    assert {file: functions for file, functions in long.items() if functions} == {}


def _attributes(node: ast.ClassDef) -> set[str]:
    """Return the names that a class assigns to ``self``, or annotates in its body."""
    annotated = {
        field.target.id
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    return annotated | {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


def _large_classes(source: str, tree: ast.Module) -> set[str]:
    """Return the names of classes that are too large and give no reason."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and (
            sum(isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) for member in node.body)
            > _MOST_METHODS
            or len(_attributes(node)) > _MOST_ATTRIBUTES
        )
        and not _REASON.search(ast.get_source_segment(source, node) or "")
    }


def test_classes_are_small() -> None:
    large = {_below_root(file): _large_classes(file.read_text(), _parsed(file)) for file in _FILES}
    assert {file: classes for file, classes in large.items() if classes} == {}


_FIELDS = "".join(f"    field_{number}: int\n" for number in range(16))
_METHODS = "".join(f"    def method_{number}(self): ...\n" for number in range(21))
_ASSIGNED = "".join(f"        self.part_{number} = 0\n" for number in range(16))


@pytest.mark.parametrize(
    "body",
    [_FIELDS, _METHODS, f"    def __init__(self):\n{_ASSIGNED}"],
    ids=["fields", "methods", "assigned"],
)
def test_a_large_class_is_found_unless_it_gives_a_reason(body: str) -> None:
    source = f"class Large:\n{body}"
    assert _large_classes(source, ast.parse(source)) == {"Large"}
    reasoned = f'class Large:\n    """Large because it is."""\n{body}'
    assert _large_classes(reasoned, ast.parse(reasoned)) == set()
