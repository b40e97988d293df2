"""Code that Python 3.11.0 to 3.11.3 take otherwise than newer ones do."""

import ast
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_FILES = sorted(_ROOT.glob("proxy/leader_hints/**/*.py"))


def _raised_in_except_groups(file: Path) -> list[int]:
    """Return the lines that raise something new in a block of ``except*``."""
    text = file.read_text(encoding="utf-8")
    return [
        node.lineno
        for block in ast.walk(ast.parse(text))
        if isinstance(block, ast.TryStar)
        for handler in block.handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise) and node.exc is not None
    ]


def test_nothing_new_is_raised_in_an_except_group_block() -> None:
    """Before 3.11.4 it comes out in one more group (gh-103590), which nobody catches."""
    raised = {str(file.relative_to(_ROOT)): _raised_in_except_groups(file) for file in _FILES}
    assert {file: lines for file, lines in raised.items() if lines} == {}
