"""The virtual cluster of `leader-hints local`."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from leader_hints.address import MAX_PORT, Address
from leader_hints.settings.fields import Group, refuse_twice
from leader_hints.settings.sasl import SaslSettings
from leader_hints.settings.tls import BrokerTlsSettings


class LocalSettings(Group):
    """The virtual cluster of `leader-hints local`: a listener for bootstrap, one for each broker.

    Its values are flags of that command alone.
    """

    bootstrap: Annotated[tuple[Address, ...], Field(min_length=1)] = Field(
        description="HOST:PORT of one or more brokers of the cluster, as clients would have it."
    )
    listen: Address = Field(
        default=Address("127.0.0.1", 19092),
        description="HOST:PORT of the bootstrap listener. The broker with node id N gets the port "
        "above it by 1 + N.",
    )
    advertise: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:-]*$",
        description="The host that clients get, without a port. Default: that of `listen`.",
    )
    ports: dict[int, Annotated[int, Field(ge=1, le=MAX_PORT)]] = Field(
        default={}, description="Ports of nodes that shall not follow from the listener's."
    )
    upstream_tls: BrokerTlsSettings = BrokerTlsSettings()
    sasl: SaslSettings = SaslSettings()

    @model_validator(mode="after")
    def _check_listen(self) -> Self:
        if self.listen.port == 0:
            raise ValueError("listen: the port cannot be 0: those of the brokers follow from it")
        if self.listen.is_wildcard and not self.advertise:
            raise ValueError(
                f"listen {self.listen} is every address of the machine; "
                "give --advertise HOST, by which clients find it"
            )
        given = [*self.ports.values(), self.listen.port]
        refuse_twice("port", [str(port) for port in given])
        return self

    @property
    def host(self) -> str:
        """The host that clients get."""
        return self.advertise or self.listen.host
