"""The image's health check: ends with 0 where the proxy's event loop turns.

It asks for /livez and not for /readyz, since to start the proxy anew mends no broker. It imports
nothing of the proxy's: it runs every few seconds, and its own start is all that it costs.
"""

import http.client
import os
import sys

HOST, _, PORT = os.environ["LEADER_HINTS_ADMIN"].rpartition(":")
LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}

connection = http.client.HTTPConnection(LOOPBACK.get(HOST, HOST), int(PORT), timeout=4)
try:
    connection.request("GET", "/livez")
    answer = connection.getresponse()
except OSError as error:
    sys.exit(f"{HOST}:{PORT}: {error}")
sys.exit(None if answer.status == 200 else f"{HOST}:{PORT}/livez says {answer.status}")
