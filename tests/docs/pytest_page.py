"""docs/pytest.md: the fixtures of the pytest plugin and what they return, from docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final

from leader_hints import pytest_plugin
from leader_hints.conformance.lab import Lab
from leader_hints.conformance.wire_log import Said, Seen
from leader_hints.faults.fault import Action, Error, Fault, Hint

_HEAD: Final = """\
# pytest fixtures

For developers who test their clients with the package's fixtures: the reference to
[these examples](local.md#as-pytest-fixtures). New versions keep what is on this page
(`CONTRIBUTING.md`).

"""
_TAIL: Final = "`make docs` generates this page from the code.\n"
#: A role of Sphinx and its target, in docstrings.
_ROLE: Final = re.compile(r":\w+:`(?:[\w.]+\.)?(\w+)`")
_RAISES: Final = re.compile(r"^:raises ([\w.]+): (.*)$", re.MULTILINE)


def page() -> str:
    """The page's text."""
    return _HEAD + "".join((_fixtures(), _lab(), _faults(), _seen())) + _TAIL


def _fixtures() -> str:
    found = (
        (name, inspect.unwrap(fixture))
        for name, fixture in vars(pytest_plugin).items()
        if name.startswith("leader_hints")
    )
    rows = (f"| `{name}` | {_one_line(fixture)} |\n" for name, fixture in found)
    return f"## Fixtures\n\n| fixture | what it is |\n|---|---|\n{''.join(rows)}\n"


def _lab() -> str:
    return f"## Lab\n\n{_text(Lab)}\n\n{''.join(_members(Lab))}"


def _members(of: type) -> Iterator[str]:
    for name, member in vars(of).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### {name}\n\n{_text(member)}\n\n"
        elif isinstance(member, FunctionType):
            yield f"### {name}\n\n```python\n{name}{_signature(member)}\n```\n\n{_text(member)}\n\n"


def _faults() -> str:
    rows = "".join(
        f"| `{name}` | {_default(field.default)} | {field.description} |\n"
        for name, field in Fault.model_fields.items()
    )
    values = "".join(
        f"- `{name}`: {', '.join(f'`{value}`' for value in enum)}. {_one_line(enum)}\n"
        for name, enum in (("action", Action), ("error", Error), ("hint", Hint))
    )
    return (
        "## Fields of a fault\n\n"
        "For `inject`. See [faults on demand](local.md#faults-on-demand).\n\n"
        f"| field | default | meaning |\n|---|---|---|\n{rows}\n{values}\n"
    )


def _seen() -> str:
    parts = (
        f"## {kind.__name__}\n\n{_text(kind)}\n\n"
        "| field | type |\n|---|---|\n"
        + "".join(
            f"| `{name}` | `{_type(hint)}` |\n"
            for name, hint in inspect.get_annotations(kind).items()
        )
        + "\n"
        for kind in (Seen, Said)
    )
    return "".join(parts)


def _signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    own = [parameter for name, parameter in signature.parameters.items() if name != "self"]
    return (
        str(signature.replace(parameters=own))
        .replace("'", "")
        .replace("collections.abc.", "")
        .replace("leader_hints.conformance.wire_log.", "")
    )


def _type(hint: Any) -> str:
    return str(hint if not isinstance(hint, type) else inspect.formatannotation(hint)).replace(
        "|", "\\|"
    )


def _default(value: Any) -> str:
    if value is ... or repr(value) == "PydanticUndefined":
        return "required"
    if isinstance(value, frozenset):
        return "none given"
    return f"`{value}`"


def _text(of: Any) -> str:
    text = _ROLE.sub(r"`\1`", inspect.getdoc(of) or "").replace("``", "`")
    return _RAISES.sub(r"Raises `\1`: \2", text)


def _one_line(of: Any) -> str:
    return " ".join(_text(of).split())
