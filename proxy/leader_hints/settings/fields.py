"""Fields: what the settings of all groups share, so that all are bounded and refused alike."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Group(BaseModel):
    """A group of settings: frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def whole(default: int, low: int, high: int, description: str) -> Any:
    """Return a field for a whole number from low to high.

    Strict, so that `true` or `"5"` in a file is refused.
    """
    return Field(default=default, ge=low, le=high, strict=True, description=description)


def secret(description: str, *, read: str) -> Any:
    """Return a field that says where a secret is. A secret itself is refused, and never shown.

    ``read``: when it is read again.
    """
    return Field(
        default="",
        pattern=r"^(|file:[^\x00]+|env:[A-Za-z_][A-Za-z0-9_]*)$",
        description=f"{description} file:PATH is the first line of a file, env:NAME an environment "
        f"variable. It is read again {read}.",
        json_schema_extra={"writeOnly": True},
    )


def file(description: str) -> Any:
    """Return a field for the path of a file; empty: none."""
    return Field(default="", pattern=r"^[^\x00]*$", description=description)


def seconds(milliseconds: int) -> float:
    """Return a setting's milliseconds as seconds."""
    return milliseconds / 1000


def seconds_or_never(milliseconds: int) -> float:
    """Return a setting's milliseconds as seconds, and 0 as infinity."""
    return milliseconds / 1000 if milliseconds else math.inf


def refuse_twice(what: str, texts: list[str]) -> None:
    """Refuse texts of which one occurs twice.

    :raises ValueError: one does.
    """
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise ValueError(f"the {what} {', '.join(twice)} is used twice; each must be used once")
