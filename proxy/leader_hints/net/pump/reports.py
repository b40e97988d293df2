"""What links report, and to whom.

Tested in ``tests/net/pump/test_endings.py``.
"""

from collections.abc import Callable, Collection

from leader_hints.core.events import Event, LinkFailed
from leader_hints.core.link.budget import network_of
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.route import Route
from leader_hints.errors import places_of
from leader_hints.net.pump.holds import Holds

Snoop = Callable[[Route, int, bytes], None]
Lack = Callable[[Route, Collection[bytes], str], None]
Doubt = Callable[[Route], None]


class Reports:
    """``emit``: where events of the pump go.

    Those of links go by ``hold_timer``, behind its own of former responses. ``snoop``: where
    Metadata responses go that pass by. ``lack``: what is called with topic ids that a client used
    and that are not known, and with what distinguishes its address; ``doubt``: when one had no id
    for a topic although this proxy synthesizes them.
    """

    __slots__ = ("_hold_timer", "_lack", "_snoop", "doubt", "emit")

    def __init__(
        self,
        hold_timer: Holds,
        emit: Callable[[Event], None],
        snoop: Snoop,
        lack: Lack,
        doubt: Doubt,
    ) -> None:
        self._hold_timer = hold_timer
        self._snoop = snoop
        self._lack = lack
        self.emit = emit
        self.doubt = doubt

    def events(self, link: LinkState) -> None:
        """Pass on a link's events, if it has any."""
        if not link.events:
            return
        events, link.events = link.events, []
        self._hold_timer.emit(events)

    def failed(self, link: LinkState, error: Exception) -> None:
        """Report a defect of the proxy that has ended a link."""
        places = places_of(error)
        self.emit(LinkFailed(route=link.route.name, link=link.number, traceback=places))

    def metadata(self, link: LinkState) -> None:
        """Pass on Metadata responses of a link."""
        snooped, link.snooped = link.snooped, []
        for version, payload in snooped:
            self._snoop(link.route, version, payload)

    def lacking_ids(self, link: LinkState) -> None:
        """Have ids looked for that a link's client used."""
        lacking, link.topic_ids.lacking = link.topic_ids.lacking, []
        self._lack(link.route, lacking, network_of(link.client.address))
