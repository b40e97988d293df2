"""The log: what is written to standard error, and how."""

from typing import Any, Literal, get_args

from pydantic import Field

from leader_hints.settings.fields import Group, whole

LogLevel = Literal["debug", "info", "warning", "error"]  # lowest first
SubsystemLevel = Literal["inherit", "debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]


def _level(description: str) -> Any:
    return Field(default="inherit", description=f"{description} inherit: as log.level.")


class LogLevels(Group):
    """The lowest level of each subsystem's lines, if it differs from log.level."""

    routes: SubsystemLevel = _level("Routes, their brokers' versions, and what went wrong there.")
    clients: SubsystemLevel = _level("The software of clients, and bytes that are not Kafka.")
    hints: SubsystemLevel = _level("Each hint given, missed, and each recovery; all at debug.")
    leaders: SubsystemLevel = _level("Leader moves.")
    subscription: SubsystemLevel = _level("The proxy's own connections to brokers.")
    journal: SubsystemLevel = _level("The journal, if it cannot be written.")
    admin: SubsystemLevel = _level("The HTTP server.")
    summary: SubsystemLevel = _level("A line for each minute in which something happened.")


class LogSettings(Group):
    """What is logged, to standard error."""

    level: LogLevel = Field(default="info", description="The lowest level that is logged.")
    format: LogFormat = Field(
        default="auto",
        description="json writes one JSON object on each line, console is for people to read; auto "
        "is console on a terminal and json elsewhere.",
    )
    moves_per_second: int = whole(
        20,
        0,
        10000,
        "Leader moves in a second that get a line of their own; the others are summed up in one.",
    )
    levels: LogLevels = LogLevels()

    @property
    def by_subsystem(self) -> dict[str, LogLevel]:
        """The least level of each subsystem."""
        own: dict[str, Any] = self.levels.model_dump()
        return {name: self.level if of == "inherit" else of for name, of in own.items()}

    @property
    def least(self) -> LogLevel:
        """The least level that any subsystem writes."""
        return min(self.by_subsystem.values(), key=get_args(LogLevel).index)
