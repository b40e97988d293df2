"""Where clients find each broker of a virtual cluster, and what they are offered for that.

A virtual cluster has a listener of its own for each broker, at the port of the bootstrap listener
plus one plus the node id, unless a map says otherwise. So a port never changes, whichever
client asks and whatever brokers come and go.

What clients are offered is bounded to what was looked through for addresses: a response that says
a broker's address, and cannot be rewritten, can then not be asked for.
"""

from collections.abc import Callable, Mapping

from leader_hints.apis import (
    describe_cluster,
    find_coordinator,
    metadata_brokers,
    node_endpoints,
    sasl_handshake,
)
from leader_hints.apis.address import Readdress
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import NODE_ENDPOINTS_FROM, Endpoint
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.wire.splice import Splice
from leader_hints.wire.steps import Steps

#: Takes a whole response and its version; returns the splices that change its addresses, in steps.
Rewriter = Callable[[memoryview, int, Readdress], Steps[list[Splice]]]
#: Called for each broker whose address passes: node id, and where the cluster has it.
Met = Callable[[int, str, int], None]

_REWRITERS: Mapping[int, Rewriter] = {
    ApiKey.PRODUCE: node_endpoints.produce_splices,
    ApiKey.FETCH: node_endpoints.fetch_splices,
    ApiKey.METADATA: metadata_brokers.address_splices,
    ApiKey.FIND_COORDINATOR: find_coordinator.address_splices,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.address_splices,
}

#: Newest version of each API that clients may use, by API key; what is not here they may not use.
#: Kafka's message definitions up to 4.1 were looked through for addresses of brokers. Of those
#: with any, DescribeQuorum is safe up to 1, and ShareFetch (78), ShareAcknowledge (79), the
#: quorum's own APIs (52 to 54, 59, 80 to 82) and whatever is newer are not offered.
NEWEST: Mapping[int, int] = {
    ApiKey.PRODUCE: node_endpoints.PRODUCE_VERSIONS[-1],
    ApiKey.FETCH: node_endpoints.FETCH_VERSIONS[-1],
    ApiKey.METADATA: metadata_brokers.VERSIONS[-1],
    ApiKey.FIND_COORDINATOR: find_coordinator.VERSIONS[-1],
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.VERSIONS[-1],
    **{2: 11, 4: 7, 5: 4, 6: 8, 7: 3, 8: 10, 9: 10, 11: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5},
    **{17: 1, 18: 4, 19: 7, 20: 6, 21: 2, 22: 6, 23: 4, 24: 5, 25: 4, 26: 5, 27: 2, 28: 5},
    **{29: 3, 30: 3, 31: 3, 32: 4, 33: 2, 34: 2, 35: 5, 36: 2, 37: 3, 38: 3, 39: 2, 40: 2},
    **{41: 3, 42: 2, 43: 2, 44: 1, 45: 1, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 55: 1},
    **{56: 3, 57: 2, 58: 0, 61: 0, 62: 4, 63: 2, 64: 0, 65: 0, 66: 2, 67: 0, 68: 1, 69: 1},
    **{70: 0, 71: 0, 72: 0, 73: 0, 74: 1, 75: 0, 76: 1, 77: 1, 83: 0, 84: 0, 85: 1, 86: 0},
    **{87: 1, 88: 0, 89: 0, 90: 1, 91: 0, 92: 0},
}


class AddressRewriting:
    """``host``: of all listeners, as clients get it; ``ports``: of each broker's.

    ``met``: is called with each address that is rewritten before the response with it goes on, so
    that the node's listener is open when the client comes.
    """

    def __init__(self, host: str, ports: BrokerPorts, met: Met) -> None:
        self._host = host
        self._ports = ports
        self._met = met

    def readdress(self, node: int, host: str, port: int) -> tuple[str, int]:
        """Return the address of a node's listener in place of its own; see ``met``."""
        self._met(node, host, port)
        return self._host, self._ports.port(node)

    def endpoint(self, node: int, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint as clients are to see it; the rack stays."""
        return Endpoint(self._host, self._ports.port(node), endpoint.rack)

    @staticmethod
    def offered(key: int, version: int) -> bool:
        """Whether clients may use a version of an API.

        ApiVersions they may always: a broker answers a version that it lacks in one that all know.
        After SaslHandshake v0 there are no messages that could be read.
        """
        if (key, version) == (ApiKey.SASL_HANDSHAKE, sasl_handshake.BARE_TOKENS_VERSION):
            return False
        return key == ApiKey.API_VERSIONS or version <= NEWEST.get(key, -1)

    @staticmethod
    def rewriter(key: int, version: int) -> Rewriter | None:
        """Return what rewrites responses of an offered version; ``None``: they have no address."""
        if key in (ApiKey.PRODUCE, ApiKey.FETCH) and version < NODE_ENDPOINTS_FROM[ApiKey(key)]:
            return None
        return _REWRITERS.get(key)
