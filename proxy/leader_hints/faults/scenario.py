"""Scenarios: faults that begin and end at given times, so that a run can be repeated."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leader_hints.faults.fault import Fault


class Step(BaseModel):
    """What happens at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_ms: int = Field(ge=0, description="Milliseconds since the proxy began to listen.")
    begin: dict[str, Fault] = Field(default={}, description="Faults that begin, each by a name.")
    end: tuple[str, ...] = Field(default=(), description="Names of faults that end.")


class Scenario(BaseModel):
    """Steps in the order of their times. The same seed chooses the same messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, description="Of the choices that faults with a probability make.")
    steps: tuple[Step, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        times = [step.at_ms for step in self.steps]
        if times != sorted(times):
            raise ValueError("the steps must stand in the order of at_ms")
        begun: set[str] = set()
        for step in self.steps:
            unknown = [name for name in step.end if name not in begun]
            if unknown:
                raise ValueError(f"at_ms {step.at_ms} ends {unknown[0]}, which has not begun")
            begun -= set(step.end)
            twice = begun & set(step.begin)
            if twice:
                raise ValueError(f"at_ms {step.at_ms} begins {min(twice)}, which has begun before")
            begun |= set(step.begin)
        return self
