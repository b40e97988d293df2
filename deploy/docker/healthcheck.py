"""The image's health check: ends with 0 where the proxy's event loop turns.

It asks for /livez and not for /readyz, since to start the proxy again helps no broker. It runs
every few seconds, and its own start is all that it costs: of the proxy it imports only how
variables are put into the address, which must be done as `run` does it.
"""

import http.client
import os
import sys

from leader_hints.cli.templates import expand

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}

try:
    address = expand(os.environ.get("LEADER_HINTS_ADMIN", ""), os.environ)
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    connection = http.client.HTTPConnection(LOOPBACK.get(host, host), int(port), timeout=4)
except ValueError as error:
    sys.exit(f"LEADER_HINTS_ADMIN is no HOST:PORT of an admin server: {error}")
try:
    connection.request("GET", "/livez")
    answer = connection.getresponse()
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"{address}: {error}")
sys.exit(None if answer.status == 200 else f"{address}/livez says {answer.status}")
