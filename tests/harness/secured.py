"""Brokers whose clients' listener asks for SASL or TLS, and what clients then need."""

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from tests.harness.cluster import Mode

#: Who authenticates, and with what. Nothing else may be found where secrets are looked for.
CLIENT, CLIENT_PASSWORD = "alice", "alices-own-secret"
PROXY, PROXY_PASSWORD = "proxy", "the-proxys-own-secret"
STORE_PASSWORD = "the-stores-secret"
USERS = {CLIENT: CLIENT_PASSWORD, PROXY: PROXY_PASSWORD}

#: Where brokers and proxies are, those of clusters whose brokers are apart among them.
_HOSTS = tuple(f"127.0.0.{last}" for last in range(1, 5))
_MODULES = "org.apache.kafka.common.security"
_MAPS = "listener.security.protocol.map"
#: Who looks at ACLs, by where they are kept.
_AUTHORIZERS: Mapping[Mode, str] = {
    "zk": "kafka.security.authorizer.AclAuthorizer",
    "kraft": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


def token(user: str, seconds: int = 3600) -> str:
    """An unsecured JWS for a user, as brokers take it that are told to."""
    now = int(time.time())
    claims = {"sub": user, "iat": now, "exp": now + seconds}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def sasl_brokers(mode: Mode, *, session_ms: int) -> dict[str, str]:
    """Settings of brokers that take all mechanisms, and where who is not allowed may do nothing.

    The tests' own connections, on another listener, may do everything.
    """
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    jaas = {
        "plain": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    return {
        _MAPS: "CLIENTS:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(name.upper() for name in jaas),
        **{f"listener.name.clients.{name}.sasl.jaas.config": text for name, text in jaas.items()},
        "connections.max.reauth.ms": str(session_ms),
        "authorizer.class.name": _AUTHORIZERS[mode],
        "super.users": "User:ANONYMOUS",
    }


def java_sasl(mechanism: str) -> dict[str, str]:
    """Settings of a Java client."""
    module, options = {
        "PLAIN": ("plain.PlainLoginModule", _login(CLIENT)),
        "OAUTHBEARER": (
            "oauthbearer.OAuthBearerLoginModule",
            f'unsecuredLoginStringClaim_sub="{CLIENT}"',
        ),
    }.get(mechanism, ("scram.ScramLoginModule", _login(CLIENT)))
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES}.{module} required {options};",
    }


def librdkafka_sasl(mechanism: str) -> dict[str, str]:
    """Settings of a client of librdkafka."""
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return own | {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={CLIENT}",
        }
    return own | {"sasl.username": CLIENT, "sasl.password": CLIENT_PASSWORD}


def _login(user: str) -> str:
    return f'username="{user}" password="{USERS[user]}"'


def proxy_sasl(mechanism: str, folder: Path) -> dict[str, str]:
    """Settings of a route; secrets go to files in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "password").write_text(f"{PROXY_PASSWORD}\n")
    (folder / "token").write_text(f"{token(PROXY)}\n")
    if mechanism == "OAUTHBEARER":
        return {"mechanism": mechanism, "token": f"file:{folder / 'token'}"}
    return {
        "mechanism": mechanism,
        "username": PROXY,
        "password": f"file:{folder / 'password'}",
    }


class Authority:
    """Certificates of one authority: as PEM for the proxy and librdkafka, as stores for Java.

    It is the one in ``folder``, if there is one.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.ca, key = str(folder / "ca.pem"), folder / "ca.key"
        if key.exists():
            root_pem = Path(self.ca).read_bytes()
            self._authority = trustme.CA.from_pem(root_pem, key.read_bytes())
        else:
            self._authority = trustme.CA()
            self._authority.cert_pem.write_to_path(self.ca)
            self._authority.private_key_pem.write_to_path(str(key))
        root = x509.load_pem_x509_certificate(self._authority.cert_pem.bytes())
        self._truststore = str(folder / "trust.p12")
        Path(self._truststore).write_bytes(
            pkcs12.serialize_java_truststore(
                [pkcs12.PKCS12Certificate(root, b"root")], _encryption()
            )
        )

    def pem(self, name: str) -> str:
        """Issue a certificate for this machine; the path of a PEM file with its key."""
        path = self._folder / f"{name}.pem"
        if not path.exists():
            issued = self._authority.issue_cert(*_HOSTS, common_name=name)
            issued.private_key_and_cert_chain_pem.write_to_path(str(path))
        return str(path)

    def java(self, name: str) -> dict[str, str]:
        """Settings of a Java client or broker with a certificate."""
        raw = Path(self.pem(name)).read_bytes()
        key = serialization.load_pem_private_key(raw, None)
        certificate = x509.load_pem_x509_certificate(raw[raw.index(b"-----BEGIN CERTIFICATE") :])
        store = self._folder / f"{name}.p12"
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(),
                key,  # type: ignore[arg-type]
                certificate,
                None,
                _encryption(),
            )
        )
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": self._truststore,
            "ssl.truststore.password": STORE_PASSWORD,
        }

    def sasl_brokers(self, *, session_ms: int) -> dict[str, str]:
        """Settings of brokers whose clients must show certificates and authenticate, by PLAIN."""
        settings = sasl_brokers("zk", session_ms=session_ms) | self.java("broker")
        without = ("authorizer.class.name", "super.users")
        return {name: value for name, value in settings.items() if name not in without} | {
            _MAPS: "CLIENTS:SASL_SSL,INTERNAL:PLAINTEXT",
            "listener.name.clients.ssl.client.auth": "required",
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        }

    def brokers(self) -> dict[str, str]:
        """Settings of brokers whose clients must show certificates."""
        return self.java("broker") | {
            _MAPS: "CLIENTS:SSL,INTERNAL:PLAINTEXT",
            "ssl.client.auth": "required",
        }

    def librdkafka(self, name: str) -> dict[str, str]:
        """Settings of a client of librdkafka with a certificate."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": self.pem(name),
            "ssl.key.location": self.pem(name),
        }


def _encryption() -> serialization.KeySerializationEncryption:
    # What Java 17 reads in any patch release.
    return (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(10_000)
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .build(STORE_PASSWORD.encode())
    )
