"""One client connection joined to its own connection to the broker."""

from leader_hints.core.hints.recovery import Awaiting
from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.link.request_flow import RequestFlow
from leader_hints.core.link.response_flow import ResponseFlow
from leader_hints.core.route import Route

#: Requests that may await a response before the broker has shown that it serves the client. None
#: that means well asks more of a broker that has not answered yet; if one does it is read later.
_FEW = 100


class Link:
    """A pure state machine: two flows and what they share.

    What drives it receives bytes into the flows' buffers, sends the pieces that they return,
    asks the hold queue where a response is held, and stops reading the client while ``crowded``.
    """

    __slots__ = ("_account", "_most", "requests", "responses", "state")

    def __init__(
        self,
        route: Route,
        number: int,
        shared: memoryview,
        budget: Budget,
        recovery: Awaiting,
        *,
        largest_request: int,
        requests_in_flight: int,
        address: str = "",
        principal: str = "",
    ) -> None:
        self.state = LinkState(route, number, address, principal)
        opaque = not self.state.policies.plan.reads
        self._most = requests_in_flight
        self._account = Account(budget, address, number)
        if route.broker.serves_anybody:
            # Nothing that the client could show makes it another than those that nobody knows.
            self._account.trust()
        self.requests = RequestFlow(shared, self._account, self.state, largest_request, opaque)
        self.responses = ResponseFlow(shared, self._account, self.state, recovery, opaque)

    @property
    def crowded(self) -> bool:
        """Whether as many requests await a response as may, or none is taken any more.

        Until the broker has answered one that it answers for nobody whom it does not serve, those
        are few: what is noted of each costs memory. So does what some need of their requests; the
        broker takes one after the other, so nobody waits for longer.
        """
        if self._account.noted > self._account.per_link:
            return True
        if self.requests.takes_no_more and not self.requests.begun:
            return True
        exchanges = len(self.state.exchanges.waiting)
        if exchanges >= self._most and self.requests.begun:
            # No response comes to a request whose rest is not taken.
            exchanges -= 1
        return exchanges >= self._most or (exchanges >= _FEW and not self._account.trusted)

    @property
    def matched(self) -> bool:
        """Whether requests are matched with their responses."""
        return not (self.requests.opaque or self.responses.opaque)

    @property
    def resting(self) -> bool:
        """Whether no request is under way, nor a part of one or of a response."""
        return not (
            self.state.exchanges.waiting
            or self.requests.begun
            or self.responses.begun
            or self.responses.held is not None
        )

    def take_no_more(self) -> None:
        """Be crowded from now on wherever no part of a request has been taken."""
        self.requests.take_no_more()

    def close(self) -> None:
        """Give back what the flows have reserved."""
        self.state.client_ends()
        self.requests.close()
        self.responses.close()
