"""Clients whose use of hints is not built in, or is to be another."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from leader_hints.settings.fields import Group

HintUse = Literal["produce", "fetch", "fetch_without_endpoints"]

#: By which proxies recognize each other: what it is offered must not be changed.
_OWN_NAME: Final = "leader-hints"
_VERSION: Final = r"^(v?[0-9]{1,9}(\.[0-9]{1,9}){0,7})?$"


def _read_version(value: Any) -> Any:
    """Refuse a number with a reason: YAML reads 2.10 as 2.1."""
    if isinstance(value, int | float):
        raise ValueError('put the version in quotes, such as "2.10": without them it is a number')
    return value


class ClientSettings(Group):
    """The hints that one kind of client uses. From `since` on, this replaces what is built in for
    its name. Other clients with unknown names are offered their broker's own versions."""

    name: str = Field(
        # What brokers accept (KIP-511).
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?|\*)$",
        description="The software name that the client sends in ApiVersions (KIP-511). "
        "`clients_seen` in the metrics and the status page show the names. `*`: all clients whose "
        "name is not known, and those that send none.",
    )
    since: Annotated[
        str,
        BeforeValidator(
            _read_version, json_schema_input_type=Annotated[str, Field(pattern=_VERSION)]
        ),
    ] = Field(
        default="",
        pattern=_VERSION,
        description="The first version to which this applies, such as 1.17; empty: every version. "
        "It applies up to the next one with this name.",
    )
    uses: tuple[HintUse, ...] = Field(
        description="The hints that it uses: produce (it takes Produce 10), fetch (Fetch 16), "
        "fetch_without_endpoints (CurrentLeader in Fetch 12 to 15). An empty list: none, so it is "
        "offered its broker's own versions. List only what the client is proved to use: "
        "others may break, see `leader-hints conformance`.",
    )

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name == _OWN_NAME:
            raise ValueError("that is the name of leader-hints itself; leave it out")
        return name

    @model_validator(mode="after")
    def _check_since(self) -> Self:
        if self.name == "*" and self.since:
            raise ValueError("the name * stands for clients of any version; leave out since")
        return self

    @property
    def first_version(self) -> tuple[int, ...]:
        """``since`` as numbers; empty for every version."""
        numbers = self.since.removeprefix("v")
        return tuple(int(part) for part in numbers.split(".")) if numbers else ()
