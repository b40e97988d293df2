"""docs/events.md: every line that the log can have, from the events and their docstrings."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from leader_hints.core.events import ErrorAnswered, Event
from leader_hints.observe.event_log import LINES, name_of

HEAD: Final = """\
# Log lines

Logs go to standard error: text on a terminal, otherwise a JSON object on each line. Each line has
`event`, which is its name, `level`, `timestamp` (UTC), and the fields below. `log.levels` sets the
lowest level of each subsystem: with `hints: debug` each hint is logged. With the setting `workers`
lines about a connection also have `worker`, the number of the process that has it.

[Troubleshooting](troubleshooting.md#log-lines) says how to act on warnings and errors.

"""
TAIL: Final = """\
## more_leaders_moved

*`info`, subsystem `leaders`*

The leader moves of one second that got no line of their own, because of
`log.moves_per_second`.

Fields: `moves`, `topics`, `to_leaders`: how many moved, of how many topics, and to which node ids.

## more_of_the_same

*`warning`, subsystem `routes`*

Lines of one kind that were left out in a minute. Clients, brokers or the system can cause such
lines without end.

Fields: `of`, `route`, `broker`, `limit`, `left_out`: the lines' name, what they are counted by, and
how many.

## loop_stuck

*`error`, subsystem `routes`*

The event loop has stalled for longer than `stuck_ms`; a separate thread writes this line.

Fields: `seconds`, `stack`: the lines of code where it stalls, without values.

## summary

*`info`, subsystem `summary`*

What happened in a minute; there is no line if nothing happened.

Fields: `links_open`, `links`, `requests`, `errors`, `hints_given`, `hints_missed` by reason,
`leader_moves`, and `epoch_rises`: leader epochs that rose under the same leader. Where errors were
to wait until Metadata has settled: `errors_settled`, by what came of it. Where hints are only
observed: `observed_given`, `observed_missed`, `observed_settled`.

`make docs` generates this page from the events in the code.
"""


def page() -> str:
    """The page's text."""
    return HEAD + "".join(_section(event) for event in LINES) + TAIL


def _section(event: type[Event]) -> str:
    line = LINES[event]
    parts = [f"## {name_of(event)}", f"*`{line.level}`, subsystem `{line.subsystem}`*"]
    parts.append(_markdown(inspect.getdoc(event) or ""))
    names = list(_fields(event))
    if any(field.name == "answered" for field in fields(event)):
        _, _, rest = (inspect.getdoc(ErrorAnswered) or "").partition("\n\n")
        parts.append(_markdown(rest))
    if names:
        parts.append("Fields: " + ", ".join(f"`{field}`" for field in names) + ".")
    return "\n\n".join(parts) + "\n\n"


def _fields(event: Any) -> Iterator[str]:
    for field in fields(event):
        if field.name == "answered":
            yield from _fields(ErrorAnswered)
        else:
            yield field.name


def _markdown(text: str) -> str:
    """A docstring's text without what leads to other code; double backticks become single ones."""
    return re.sub(r"; see\s+:\w+:`[^`]+`\.?", ".", text).replace("``", "`")
