"""Problems: what is wrong with a request or a scenario, in sentences for those who wrote it.

Tested in ``tests/faults/test_problems.py``.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_WHOLE: Final = "must be a whole number"
_NUMBER: Final = "must be a number"
_LIST: Final = "must be a list"
_OBJECT: Final = "must be an object"
#: By pydantic's names of what it finds; in braces what it says of that.
_SENTENCES: Final[Mapping[str, str]] = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such option",
    "enum": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "finite_number": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "frozen_set_type": _LIST,
    "tuple_type": _LIST,
    "too_short": "must not be empty",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "json_invalid": "no JSON: {error}",
}


def problems(error: ValidationError, whole: str) -> list[str]:
    """Return what is wrong, a line for each problem; ``whole``: what all of it is called."""
    found = error.errors(include_url=False)
    return [
        f"{'.'.join(map(str, problem['loc'])) or whole}: {_reason(problem)}"
        for problem in found
        if not _follows(problem, found)
    ]


def _follows(problem: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether a list counts as too short because its only member was refused."""
    path = problem["loc"]
    return problem["type"] == "too_short" and any(
        len(one["loc"]) > len(path) and one["loc"][: len(path)] == path for one in found
    )


def _reason(problem: ErrorDetails) -> str:
    if problem["type"] == "value_error":
        # A rule of the model says all that there is to say.
        return str(problem["ctx"]["error"])
    sentence = _SENTENCES.get(problem["type"])
    if sentence is None:
        return problem["msg"]
    return sentence.format_map({key: _plain(said) for key, said in problem.get("ctx", {}).items()})


def _plain(bound: object) -> object:
    """Bounds of numbers that need not be whole come as 1.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
