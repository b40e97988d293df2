"""Code that Python 3.11.0 to 3.11.3 take otherwise than newer ones do."""

import ast
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_FILES = sorted(_ROOT.glob("proxy/leader_hints/**/*.py"))


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.relative_to(_ROOT)))
def test_nothing_new_is_raised_in_an_except_group_block(file: Path) -> None:
    """Before 3.11.4 it comes out in one more group (gh-103590), which nobody catches."""
    raised = [
        node.lineno
        for block in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(block, ast.TryStar)
        for handler in block.handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise) and node.exc is not None
    ]
    assert raised == []
