"""Routes: a listening address and the one broker behind it."""

from typing import Self

from pydantic import Field, model_validator

from leader_hints.address import Address, leads_to
from leader_hints.settings.fields import Group
from leader_hints.settings.sasl import SaslSettings
from leader_hints.settings.tls import BrokerTlsSettings, ClientTlsSettings


class RouteSettings(Group):
    """A listening address and the one broker behind it."""

    listen: Address = Field(
        description="HOST:PORT that clients connect to and that the broker advertises. 0.0.0.0 "
        "listens on every IPv4 address, [::] on every IPv6 address, port 0 on a free port. ${NAME} "
        "stands for an environment variable."
    )
    upstream: Address = Field(
        description="HOST:PORT of the broker's listener whose advertised address is this route's. "
        "${NAME} stands for an environment variable."
    )

    name: str = Field(
        default_factory=lambda route: str(route.get("listen", "")),
        pattern=r"^[A-Za-z0-9._:\[\]%-]{1,100}$",
        json_schema_extra={"pattern": r"^[A-Za-z0-9._:\[\]%${}-]{1,100}$"},
        description="Names the route in logs and metrics; ${NAME} stands for an environment "
        "variable. Default: the text of `listen`.",
    )
    client_tls: ClientTlsSettings = ClientTlsSettings()
    upstream_tls: BrokerTlsSettings = BrokerTlsSettings()
    peer_tls: BrokerTlsSettings = BrokerTlsSettings()
    sasl: SaslSettings = SaslSettings()
    proxy_protocol: bool = Field(
        default=False,
        strict=True,
        description="Whether each connection begins with a header of the PROXY protocol, version 1 "
        "or 2, as a load balancer sends it; then a connection without it is refused. The client's "
        "address in logs and journal is taken from it, so only the load balancer may reach the "
        "listener.",
    )

    @model_validator(mode="after")
    def _check_upstream(self) -> Self:
        if self.upstream.port == 0 or self.upstream.is_wildcard:
            raise ValueError(f"upstream {self.upstream} is no address that can be connected to")
        if leads_to(self.upstream, self.listen):
            raise ValueError(
                f"upstream {self.upstream} leads to the route's own listen {self.listen}; "
                "upstream must be the broker's address"
            )
        return self
