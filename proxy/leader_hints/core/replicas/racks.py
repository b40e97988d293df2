"""In which rack each node of a cluster is."""

from collections.abc import Mapping

from leader_hints.apis.leader_hint import Endpoint

#: Brokers among which a rack is looked for at once: one list is looked through once.
_Endpoints = Mapping[int, Endpoint]


class Racks:
    """Racks by node: of ``configured``, and where that names none, of the brokers' Metadata.

    Fleets without `broker.rack` have none in Metadata.
    """

    __slots__ = ("_configured", "_known", "_of")

    def __init__(self, configured: Mapping[int, str] | None = None) -> None:
        self._configured = {**(configured or {})}
        #: All racks, and the list of brokers that they were made of.
        self._known: frozenset[str] = frozenset(self._configured.values())
        self._of: _Endpoints | None = None

    def of(self, node: int, endpoints: _Endpoints) -> str:
        """Return the rack of a node, "" if none is known."""
        rack = self._configured.get(node)
        if rack is None:
            endpoint = endpoints.get(node)
            rack = None if endpoint is None else endpoint.rack
        return rack or ""

    def has(self, rack: str, endpoints: _Endpoints) -> bool:
        """Whether a broker is in that rack."""
        if endpoints is not self._of:
            listed = {endpoint.rack for endpoint in endpoints.values() if endpoint.rack}
            self._known = frozenset(self._configured.values()) | listed
            self._of = endpoints
        return rack in self._known
