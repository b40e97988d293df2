"""SASL: how the proxy's own connections authenticate."""

import re
from typing import Final, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from leader_hints.address import Address
from leader_hints.settings.fields import Group, file, secret

SaslMechanism = Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]

#: Scheme, authority and path of a URL without user, password and fragment.
_URL: Final = re.compile(r"(https?)://([!-~]+?)([/?][!-~]*)?", re.ASCII)
_URL_PATTERN: Final = r"^(|https?://[^\s/?#@]+([/?][^\s#]*)?)$"
_PORTS: Final = {"http": 80, "https": 443}


class TokenUrl(NamedTuple):
    """Where a token endpoint is. ``target``: path and query, as a request has them."""

    tls: bool
    address: Address
    target: str


class SaslSettings(Group):
    """How the proxy's own connections authenticate. Clients authenticate themselves, through it."""

    # Large because each mechanism has settings of its own, and each of them is a field.

    mechanism: SaslMechanism = Field(
        default="none",
        description="none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI (Kerberos, "
        "which needs the extra kafka-leader-hints[kerberos]).",
    )
    username: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The user's name, for PLAIN and SCRAM.",
    )
    password: str = secret("The user's password, for PLAIN and SCRAM.", read="for each connection")
    token: str = secret(
        "The token (a JWS), for OAUTHBEARER without token_endpoint.", read="for each connection"
    )
    token_endpoint: str = Field(
        default="",
        pattern=_URL_PATTERN,
        description="The URL at which tokens for OAUTHBEARER are fetched by the client credentials "
        "grant of OAuth 2.0, such as https://idp.example.com/oauth2/token. Empty: token has it.",
    )
    token_endpoint_ca: str = file(
        "A PEM file with the roots of the token endpoint's certificate. Empty: the system's."
    )
    client_id: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="By which the token endpoint knows the proxy.",
    )
    client_secret: str = secret("The secret of client_id.", read="for each token")
    scope: str = Field(
        default="",
        pattern=r"^[ -~]*$",
        description="The scopes that a token is asked for, between blanks. Empty: the endpoint's "
        "default.",
    )
    principal: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="The proxy's own Kerberos principal, such as "
        "leader-hints/proxy-1.example.com@EXAMPLE.COM, for GSSAPI. Empty: that of ticket_cache.",
    )
    keytab: str = file(
        "The file with the keys of principal. The proxy gets tickets with them, and renews them."
    )
    ticket_cache: str = Field(
        default="",
        pattern=r"^[^\x00]*$",
        description="In place of keytab: a ticket cache that another program renews, such as "
        "/run/leader-hints/krb5cc or KCM:. It is read again for each connection.",
    )
    service_name: str = Field(
        default="kafka",
        pattern=r"^[^\x00-\x20/@]+$",
        description="The first part of the brokers' Kerberos principals, as brokers have it in "
        "sasl.kerberos.service.name.",
    )
    server_name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._-]{0,253}$",
        description="The host in the Kerberos principal of the upstream broker. Empty: the host of "
        "the connection. For other brokers it is always the host that they advertise.",
    )

    @field_validator("token_endpoint")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url:
            _parse_url(url)
        return url

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if self.mechanism == "OAUTHBEARER":
            self._check_token()
        elif self.mechanism == "GSSAPI":
            self._check_ticket()
        elif self.mechanism != "none" and not (self.username and self.password):
            raise ValueError(f"mechanism {self.mechanism} needs username and password")
        return self

    def _check_token(self) -> None:
        if bool(self.token) == bool(self.token_endpoint):
            raise ValueError("mechanism OAUTHBEARER needs token or token_endpoint, and not both")
        if self.token_endpoint and not (self.client_id and self.client_secret):
            raise ValueError("token_endpoint needs client_id and client_secret")

    def _check_ticket(self) -> None:
        if bool(self.keytab) == bool(self.ticket_cache):
            raise ValueError("mechanism GSSAPI needs keytab or ticket_cache, and not both")
        if self.keytab and not self.principal:
            raise ValueError("keytab needs principal, whose key is in it")

    @property
    def token_url(self) -> TokenUrl:
        """The parts of ``token_endpoint``, which must not be empty."""
        return _parse_url(self.token_endpoint)


def _parse_url(url: str) -> TokenUrl:
    """Read a URL.

    :raises ValueError: it is none that can be asked.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError("allowed: such as https://idp.example.com/oauth2/token")
    scheme, authority, target = parts[1], parts[2], parts[3] or ""
    has_port = ":" in authority.rpartition("]")[2]
    address = Address.parse(authority if has_port else f"{authority}:{_PORTS[scheme]}")
    return TokenUrl(scheme == "https", address, target if target.startswith("/") else f"/{target}")
