"""The topic ids that the client of a link uses or may use (KIP-516).

Tested in ``tests/core/link/test_link_synthetic_ids.py``.
"""

from collections.abc import Collection

from leader_hints.core.link.client import LinkClient
from leader_hints.core.route import Route
from leader_hints.core.versions.client_capabilities import HintForm


class LinkTopicIds:
    """Which ids the client may be offered, and which it used that have no names.

    ``lacking``: ids whose names were not known, of requests that the broker has answered, so that
    the client may ask it; what drives the link has them looked for. ``by_ids``: the client was
    offered to name topics by ids that the broker does not take. ``outdated``: it would be better
    served by name. It is to be offered other versions, so what drives the link ends it when no
    request is under way. ``without_ids``: a client that may have synthetic ids had none for a
    topic, so some broker may have given none; what drives the link has it looked for.
    """

    __slots__ = ("_client", "_route", "by_ids", "lacking", "outdated", "without_ids")

    def __init__(self, route: Route, client: LinkClient) -> None:
        self._route = route
        self._client = client
        self.lacking: list[bytes] = []
        self.by_ids = False
        self.outdated = False
        self.without_ids = False

    @property
    def synthesized(self) -> bool:
        """Whether this client is to be offered synthetic topic ids.

        Other proxies always are: from that they detect that this one synthesizes them.
        """
        route, client = self._route, self._client
        wanted = route.config.synthesize and HintForm.FETCH in client.hint_forms
        return wanted and (route.broker.ids_everywhere or client.is_proxy)

    @property
    def have_names(self) -> bool:
        """Whether the ids that this client may use can be named, as far as that is known.

        Where brokers hide topics from the proxy, clients know ids that it does not.
        """
        view = self._route.broker.view
        if view is None or not view.topics.have_ids or not view.hidden.none:
            return False
        return not view.unknown_ids.withheld(self._client.known_as, view.topics.name)

    def lack(self, ids: Collection[bytes]) -> None:
        """Take note that the broker has answered a request with ids that have no names here."""
        self.lacking += ids
        view = self._route.broker.known
        for topic_id in ids if self.by_ids else ():
            if view.unknown_ids.unnameable(topic_id, hides=bool(view.hidden)):
                view.unknown_ids.withhold(self._client.known_as, topic_id)
                self.outdated = True
