"""One client connection joined to its own connection to the broker."""

from proxy.core.budget import Budget
from proxy.core.link_state import LinkState
from proxy.core.recovery import Recovery
from proxy.core.requests import RequestFlow
from proxy.core.responses import ResponseFlow
from proxy.core.route import Route


class Link:
    """A pure state machine: two flows and what they share.

    What drives it receives bytes into the flows' buffers, sends the pieces that they return,
    asks the desk where a response is held, and stops reading the client while ``crowded``.
    """

    __slots__ = ("_most", "requests", "responses", "state")

    def __init__(
        self,
        route: Route,
        number: int,
        shared: memoryview,
        budget: Budget,
        recovery: Recovery,
        *,
        largest_request: int,
        requests_in_flight: int,
        address: str = "",
    ) -> None:
        self.state = LinkState(route, number, address)
        opaque = not self.state.plan.reads
        self._most = requests_in_flight
        self.requests = RequestFlow(shared, budget, self.state, largest_request, opaque)
        self.responses = ResponseFlow(shared, budget, self.state, recovery, opaque)

    @property
    def crowded(self) -> bool:
        """Whether as many requests await a response as may."""
        return len(self.state.exchanges) >= self._most

    def close(self) -> None:
        """Give back what the flows have reserved."""
        self.requests.close()
        self.responses.close()
