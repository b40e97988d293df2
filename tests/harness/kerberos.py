"""Brokers that ask for Kerberos or a token, and the servers that they need for that."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from tests.harness.cluster import HOST, JVM_OPTIONS, Mode, Place, RealCluster
from tests.harness.kdc import REALM, Kdc
from tests.harness.ports import free_ports
from tests.harness.secured import CLIENT, PROXY, Authority
from tests.harness.token_server import AUDIENCE, TokenServer

#: What brokers advertise, and have in their principal: no IP address.
_NAME: Final = "localhost"
#: A principal that the brokers' keytab has, and their listener does not name: it is not accepted.
OTHER: Final = "kafka/other.localhost"
_MODULES: Final = "org.apache.kafka.common.security"
_AUTHORIZERS: Final[Mapping[Mode, str]] = {
    "zk": "kafka.security.authorizer.AclAuthorizer",
    "kraft": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


class KerberosCluster(RealCluster):
    """A cluster that takes GSSAPI and OAUTHBEARER, and its realm.

    Its brokers advertise a host name. ``kdc`` knows them, the proxy and a client, whose keytabs are
    :attr:`proxy_keytab` and :attr:`client_keytab`. ``tokens`` are signed where ``signed``.
    """

    def __init__(
        self, version: str, mode: Mode, *, folder: Path, session_ms: int, signed: bool
    ) -> None:
        self.kdc = Kdc(folder / "kdc")
        self.authority = Authority(folder / "tls")
        algorithm = "RS256" if signed else "none"
        self.tokens = TokenServer(folder, self.authority.pem("tokens"), algorithm)
        ports = free_ports(6)
        super().__init__(
            version,
            mode,
            folder=folder,
            overrides=self._settings(mode, session_ms, signed),
            jvm_options=(*JVM_OPTIONS, self.java_option),
            places={
                node: Place(_NAME, ports[2 * node - 2], ports[2 * node - 1], (), HOST)
                for node in (1, 2, 3)
            },
        )

    @property
    def java_option(self) -> str:
        """What JVMs need, to find the KDC."""
        return f"-Djava.security.krb5.conf={self.kdc.config}"

    @property
    def proxy_keytab(self) -> Path:
        """With the key of the proxy's principal."""
        return self.kdc.config.with_name("proxy.keytab")

    @property
    def client_keytab(self) -> Path:
        """With the key of the client's principal."""
        return self.kdc.config.with_name("client.keytab")

    def __enter__(self) -> Self:
        try:
            self.kdc.__enter__()
            self.kdc.add(PROXY, CLIENT, f"kafka/{_NAME}", OTHER)
            self.kdc.keytab("proxy", PROXY)
            self.kdc.keytab("client", CLIENT)
            self.kdc.keytab("broker", f"kafka/{_NAME}", OTHER)
            self.tokens.__enter__()
        except BaseException:
            self.close()
            raise
        return super().__enter__()

    def close(self) -> None:
        super().close()
        self.kdc.close()
        self.tokens.close()

    def java_client(self) -> dict[str, str]:
        """Settings of a Java client."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": _login(self.client_keytab, CLIENT),
        }

    def _settings(self, mode: Mode, session_ms: int, signed: bool) -> dict[str, str]:
        keytab = self.kdc.config.with_name("broker.keytab")
        validator = {
            "listener.name.clients.oauthbearer.sasl.server.callback.handler.class": (
                f"{_MODULES}.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": self.tokens.keys_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        return {
            "listener.security.protocol.map": (
                "CLIENTS:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "GSSAPI,OAUTHBEARER",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.clients.gssapi.sasl.jaas.config": _login(keytab, f"kafka/{_NAME}"),
            "listener.name.clients.oauthbearer.sasl.jaas.config": (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
                'unsecuredLoginStringClaim_sub="broker";'
            ),
            **(validator if signed else {}),
            "connections.max.reauth.ms": str(session_ms),
            # Nobody else may do anything.
            "authorizer.class.name": _AUTHORIZERS[mode],
            "super.users": f"User:ANONYMOUS;User:{PROXY};User:{CLIENT}",
        }


def _login(keytab: Path, principal: str) -> str:
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}@{REALM}";'
    )


def missing_kcat() -> str | None:
    """Say what a client of librdkafka with GSSAPI needs and this machine lacks; None: nothing."""
    plugins = list(Path("/usr/lib").glob("*/sasl2/libgssapiv2.so"))
    if shutil.which("kcat") is None or not plugins:
        return "librdkafka's GSSAPI needs kcat and libsasl2-modules-gssapi-mit"
    return None


def kcat(cluster: KerberosCluster, folder: Path, *arguments: str, input: str = "") -> str:
    """Run kcat, a client of librdkafka, with GSSAPI; PyPI's wheels of librdkafka have none."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": CLIENT,
        "sasl.kerberos.keytab": str(cluster.client_keytab),
    }
    flags = [flag for name, value in settings.items() for flag in ("-X", f"{name}={value}")]
    done = subprocess.run(
        ["kcat", "-q", "-b", cluster.bootstrap, *flags, *arguments],
        input=input,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | cluster.kdc.environment | {"KRB5CCNAME": f"FILE:{folder}/kcat-cache"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
