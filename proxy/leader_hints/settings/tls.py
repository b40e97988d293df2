"""TLS: towards clients, and towards brokers."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from leader_hints.address import parse_host
from leader_hints.settings.fields import Group, file, secret

ClientTlsMode = Literal["refuse", "pass", "terminate"]
TlsVersion = Literal["1.2", "1.3"]


class _TlsSettings(Group):
    """What both sides of TLS share: a certificate of the proxy's own."""

    certificate: str = file(
        "A PEM file with the proxy's certificate, followed by the intermediate certificates."
    )
    key: str = file("A PEM file with the certificate's private key; empty: it is in certificate.")
    key_password: str = secret(
        "The password of the key; empty: it has none.", read="together with the key"
    )
    minimum_version: TlsVersion = Field(
        default="1.2", description="The oldest version of TLS that is accepted: 1.2 or 1.3."
    )


class ClientTlsSettings(_TlsSettings):
    """TLS towards clients. Files are read again when they change, and on SIGHUP."""

    mode: ClientTlsMode = Field(
        default="refuse",
        description="refuse: clients speak no TLS; those that do are refused. terminate: clients "
        "speak TLS with the proxy, and are given its certificate. pass: TLS links go through "
        "unread to a listener that speaks TLS itself, and get no hints.",
    )
    ca: str = file(
        "A PEM file with the roots of clients' certificates. Empty: clients are not asked for one. "
        "Otherwise clients without a certificate from these roots are refused."
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if self.mode == "terminate" and not self.certificate:
            raise ValueError("mode terminate needs certificate, which clients are given")
        return self


class BrokerTlsSettings(_TlsSettings):
    """TLS towards brokers. Files are read again when they change, and on SIGHUP."""

    enabled: bool = Field(default=False, strict=True, description="Whether to use TLS.")
    ca: str = file(
        "A PEM file with the roots of the certificates that are trusted. Empty: the system's."
    )
    server_name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:-]{0,253}$",
        description="The host name or IP address that must be in the certificate. Empty: the host "
        "of the connection.",
    )

    @field_validator("server_name")
    @classmethod
    def _check_server_name(cls, name: str) -> str:
        """What is neither would be refused by Python's TLS only at the first connection."""
        try:
            if name:
                parse_host(f"[{name}]" if ":" in name else name)
        except ValueError:
            raise ValueError(
                "that is neither a host name nor an IP address; allowed: such as "
                "broker-1.example.com, 192.0.2.1 or 2001:db8::1"
            ) from None
        return name
