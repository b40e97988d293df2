"""SASL: how the proxy's own connections authenticate."""

from typing import Literal, Self

from pydantic import Field, model_validator

from leader_hints.settings.fields import Group, secret

SaslMechanism = Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class SaslSettings(Group):
    """How the proxy's own connections authenticate. Clients authenticate themselves, through it."""

    mechanism: SaslMechanism = Field(
        default="none",
        description="none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    )
    username: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The user's name, for PLAIN and SCRAM.",
    )
    password: str = secret("The user's password, for PLAIN and SCRAM.", read="for each connection")
    token: str = secret("The token (a JWS), for OAUTHBEARER.", read="for each connection")

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if self.mechanism == "OAUTHBEARER":
            if not self.token:
                raise ValueError("mechanism OAUTHBEARER needs token")
        elif self.mechanism != "none" and not (self.username and self.password):
            raise ValueError(f"mechanism {self.mechanism} needs username and password")
        return self
