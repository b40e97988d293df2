"""The ports of a virtual cluster's listeners, one for each broker."""

from collections.abc import Mapping

from leader_hints.address import MAX_PORT


class BrokerPorts:
    """``base``: the port of the bootstrap listener. ``given``: of nodes whose port does not follow
    from that.
    """

    def __init__(self, base: int, given: Mapping[int, int]) -> None:
        self._base = base
        self._by_node = dict(given)
        self._given = frozenset(given.values())

    def port(self, node: int) -> int:
        """Return the port of a node's listener; 0 where it has none.

        That is where the rule leads beyond the last port, or to one that is given to another node:
        clients must never be led to another broker than the one they ask for.
        """
        if node in self._by_node:
            return self._by_node[node]
        port = self._base + 1 + node
        return 0 if port > MAX_PORT or port in self._given else port

    def lack(self, node: int) -> str:
        """Return why a node has no port, and what the operator can do."""
        port = self._base + 1 + node
        reason = "another node has" if port in self._given else "is above 65535"
        return f"node {node} would listen on port {port}, which {reason}; give --port {node}=PORT"
