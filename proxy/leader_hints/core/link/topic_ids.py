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
    offered to name topics by ids that the broker does not take. ``without_ids``: a client that may
    have synthetic ids had none for a topic, so some broker may have given none; what drives the
    link has it looked for.
    """

    __slots__ = (
        "_client",
        "_given",
        "_route",
        "_unnameable",
        "_withheld",
        "by_ids",
        "lacking",
        "without_ids",
    )

    def __init__(self, route: Route, client: LinkClient) -> None:
        self._route = route
        self._client = client
        self.lacking: list[bytes] = []
        self.by_ids = False
        self.without_ids = False
        #: The client used ids that have no names. It would be better served by name.
        self._unnameable = False
        self.agreed()

    def agreed(self) -> None:
        """Take note that the link's versions are agreed on, by what is known now."""
        route = self._route
        #: Synthetic ids are not offered here yet, as they are to be.
        self._withheld = route.raised and route.config.synthesize and not self.synthesized
        #: Another proxy has them here, and takes it that this one's clients have them, too.
        self._given = self._client.is_proxy and self.synthesized

    @property
    def outdated(self) -> bool:
        """Whether the client is to be offered other versions than this link's.

        What drives the link ends it when no request is under way. On its other links the client
        gets the ids that were withheld here: it would lose them again with each Metadata response
        of this link, and its broker would be asked for ids that it does not know.
        """
        if self._withheld and self.synthesized:
            return True
        return self._unnameable or (self._given and not self.synthesized)

    @property
    def synthesized(self) -> bool:
        """Whether this client is to be offered synthetic topic ids.

        Other proxies are before all brokers give them: from that they detect that this one
        synthesizes them. But not where its broker hides topics: then its clients never are.
        """
        route, client = self._route, self._client
        wanted = route.config.synthesize and HintForm.FETCH in client.hint_forms
        if not (wanted and client.is_proxy):
            return wanted and route.broker.ids_everywhere
        view = route.broker.view
        return view is None or not view.hidden.some(route.name)

    @property
    def have_names(self) -> bool:
        """Whether the ids that this client may use can be named, as far as that is known.

        Where its broker hides topics from the proxy, clients know ids that it does not.
        """
        view, route = self._route.broker.view, self._route.name
        if view is None or not view.topics.have_ids or not view.hidden.none(route):
            return False
        return not view.unknown_ids.withheld(self._client.known_as, view.topics.name)

    def lack(self, ids: Collection[bytes]) -> None:
        """Take note that the broker has answered a request with ids that have no names here."""
        self.lacking += ids
        view = self._route.broker.known
        unknown, hides = view.unknown_ids, view.hidden.some(self._route.name)
        # Once for a link, which ends then: a request may be under way for long, and others come.
        for topic_id in ids if self.by_ids and not self._unnameable else ():
            if unknown.unnameable(topic_id, hides=hides):
                # One is remembered of a client, and all processes get each.
                unknown.withhold(self._client.known_as, topic_id)
                self._unnameable = True
                break
