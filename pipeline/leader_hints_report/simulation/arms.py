"""Arms: what is set side by side. Each is a mode, with or without a changed setting."""

from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import ValidationError

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.parameters import Parameters, first_mistake

#: A setting of clients, by the name that Kafka has for it.
_BACKOFF: Final = "retry_backoff_ms"


class Mode(StrEnum):
    """``NO_PROXY``: brokers give no hints. ``HINTS``: proxies as by default. ``SETTLED``: with
    ``hold.settle`` besides. ``NATIVE``: brokers of 3.7, which give hints themselves.
    ``NO_BACKOFF``: KIP-951's rejected alternative: clients do not back off, but wait for Metadata.
    """

    NO_PROXY = "no-proxy"
    HINTS = "hints"
    SETTLED = "settled"
    NATIVE = "native"
    NO_BACKOFF = "no-backoff"

    @property
    def has_proxy(self) -> bool:
        """Whether there are proxies."""
        return self in (Mode.HINTS, Mode.SETTLED)

    @property
    def gives_hints(self) -> bool:
        """Whether clients that use hints get them."""
        return self in (Mode.HINTS, Mode.SETTLED, Mode.NATIVE)


class Arm(NamedTuple):
    """``fleet``: with the change made. ``change``: as it was given, empty for none."""

    mode: Mode
    change: str
    fleet: Fleet

    @property
    def name(self) -> str:
        """The arm's name in tables."""
        return f"{self.mode}, {self.change}" if self.change else str(self.mode)


def arms(fleet: Fleet, modes: tuple[Mode, ...], changes: tuple[str, ...]) -> list[Arm]:
    """Return each mode as the fleet is, and with each of the changes.

    :raises PipelineError: a change is none.
    """
    fleets = {"": fleet, **{change: changed_fleet(fleet, change) for change in changes}}
    return [
        Arm(mode, change, its) for change, its in fleets.items() for mode in dict.fromkeys(modes)
    ]


def changed_fleet(fleet: Fleet, change: str) -> Fleet:
    """Return a fleet with NAME=VALUE: of the event, of all clients, or a parameter.

    :raises PipelineError: it is no NAME=VALUE, or there is no such setting, or it cannot be that.
    """
    name, equals, text = change.partition("=")
    # As YAML has it: the leaders do not return, all move at once, the client's own.
    value = None if text == "null" else text
    document = fleet.model_dump(mode="json")
    if not equals:
        raise PipelineError(f"--change {change}: it is no NAME=VALUE")
    if name in Parameters.model_fields:
        document["parameters"][name] = value
    elif name in type(fleet.event).model_fields and name != "kind":
        document["event"][name] = value
    elif name == _BACKOFF:
        for clients in document["clients"]:
            clients[name] = value
    else:
        own = [of for of in type(fleet.event).model_fields if of != "kind"]
        raise PipelineError(
            f"--change {change}: there is no such setting; of this event there are "
            f"{', '.join(own) or 'none'}, of clients {_BACKOFF}, and the parameters of "
            "docs/simulation.md"
        )
    try:
        return Fleet.model_validate(document)
    except ValidationError as error:
        raise PipelineError(f"--change {change}: {first_mistake(error)}") from None
