"""A small server of tokens, as a process: an OAuth 2.0 token endpoint, and the keys of its tokens.

``python -m tests.harness.token_server PORT KEYS_PORT ALGORITHM CERTIFICATE`` serves the endpoint by
HTTPS, and a JWKS by HTTP. It issues signed tokens (RS256), or unsecured ones (none), to one client
that knows its secret (RFC 6749, section 4.4).
"""

import base64
import json
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.harness import processes
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.harness.waiting import until

#: Both have characters that a form encodes.
CLIENT_ID: Final = "leader hints"
CLIENT_SECRET: Final = "s3cret/with+ü"
SUBJECT: Final = "proxy"
SCOPE: Final = "kafka"
AUDIENCE: Final = "brokers"
#: As long as a session, and so renewed before that.
LIFE_S: Final = 10
HOST: Final = "127.0.0.1"


class TokenServer:
    """That process, as a context manager."""

    def __init__(self, folder: Path, certificate: str, algorithm: str = "RS256") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "tokens.log"
        ports = free_ports(2)
        self.url = f"https://{HOST}:{ports[0]}/realms/test/token?from=tests"
        self.keys_url = f"http://{HOST}:{ports[1]}/keys"
        self._argv = [sys.executable, "-m", __name__, *map(str, ports), algorithm, certificate]

    def __enter__(self) -> Self:
        self._process = processes.start(
            self._argv, output=self._log, environment={"PYTHONPATH": PYTHONPATH}
        )
        until(lambda: "serving" in self._log.read_text(), "the server of tokens is ready")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        processes.end(self._process)

    @property
    def issued(self) -> int:
        """How many tokens it has issued."""
        return self._log.read_text().count("issued")


class _Issuer:
    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self) -> str:
        now = int(time.time())
        head = {"alg": self._algorithm, "typ": "JWT", "kid": "one"}
        claims = {"sub": SUBJECT, "aud": AUDIENCE, "scope": SCOPE, "iat": now, "exp": now + LIFE_S}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        if self._algorithm == "none":
            return f"{signed}."
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"

    def keys(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one"}
        n, e = (
            _encoded(number.to_bytes(-(-number.bit_length() // 8), "big"))
            for number in (numbers.n, numbers.e)
        )
        return {"keys": [{**key, "n": n, "e": e}]}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _handler(issuer: _Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, issuer.keys())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(urllib.parse.parse_qsl(body))
            pair = f"{urllib.parse.quote_plus(CLIENT_ID)}:{urllib.parse.quote_plus(CLIENT_SECRET)}"
            known = f"Basic {base64.b64encode(pair.encode()).decode()}"
            if self.headers["Authorization"] != known:
                self._answer(401, {"error": "invalid_client", "error_description": "who is that"})
            elif form != {"grant_type": "client_credentials", "scope": SCOPE}:
                self._answer(400, {"error": "invalid_request"})
            else:
                print("issued", flush=True)
                answer = {"access_token": issuer.token(), "token_type": "Bearer"}
                self._answer(200, {**answer, "expires_in": LIFE_S})

        def _answer(self, status: int, answer: Mapping[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is logged of requests."""

    return Handler


def main(port: str, keys_port: str, algorithm: str, certificate: str) -> None:
    """Serve until killed."""
    handler = _handler(_Issuer(algorithm))
    endpoint, keys = (ThreadingHTTPServer((HOST, int(each)), handler) for each in (port, keys_port))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
    threading.Thread(target=keys.serve_forever, daemon=True).start()
    print("serving", flush=True)
    endpoint.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
