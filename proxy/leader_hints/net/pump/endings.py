"""How links end: what is still delivered, and when both sockets are closed."""

import math
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from leader_hints.core.events import BadBrokerBytes, BadClientBytes, LimitReached
from leader_hints.core.link.link_state import LinkState
from leader_hints.net.clients.reset import RESETS
from leader_hints.net.pump.holds import Holds
from leader_hints.net.pump.limits import PumpLimits
from leader_hints.net.pump.link_times import LinkTimes
from leader_hints.net.pump.reports import Reports
from leader_hints.net.pump.send_queues import SendQueues
from leader_hints.net.pump.socket_pair import Side, SocketPair
from leader_hints.net.pump.watched_sides import WatchedSides


class Endings:
    """Takes links out of ``pairs`` as they end.

    ``times``: of all links. ``draining``: which links are not closed while the process ends;
    ``None``: it does not.
    """

    __slots__ = (
        *("_closed", "_hold_timer", "_pairs", "_queues", "_reports", "_reviews_all", "_watched"),
        *("draining", "times"),
    )

    def __init__(
        self,
        pairs: dict[int, SocketPair],
        watched: WatchedSides,
        queues: SendQueues,
        hold_timer: Holds,
        reports: Reports,
        limits: PumpLimits,
    ) -> None:
        self._pairs = pairs
        self._watched = watched
        self._queues = queues
        self._hold_timer = hold_timer
        self._reports = reports
        self._reviews_all = limits.idle < math.inf
        self.times = LinkTimes(limits)
        self.draining: Callable[[LinkState], bool] | None = None
        #: Links that are closed, and whose parts still keep each other.
        self._closed: list[SocketPair] = []

    # One side ends.

    def end(self, side: Side) -> None:
        """The other end has no more to say: pass on what was kept back, and say so too."""
        pair = side.pair
        side.ended = True
        if side is pair.client and (side.write_closed or not pair.moves):
            self.close(pair)
            return
        if side is pair.broker:
            if not (pair.answered or pair.client.ended):
                # A broker that stops: what the client sent may have come too late to be read, and
                # a client without a proxy would have been reset for that.
                self.turn_away(pair)
                return
            self._close_write(pair)
            if pair.link.responses.held is not None:
                return
        error = self._queues.send(side.peer, side.flow.ended())
        if error is not None:
            self.refused(side.peer, error)
        if pair.open:
            side.peer.shut = True
            if not side.peer.queue:
                self.shut(side.peer)
            if pair.open:
                self._watched.update(side)
                self.times.linger(pair)

    def peer_closed(self, side: Side) -> None:
        """A side that is not read now has ended: taking what it sent must not last for ever."""
        side.peer_closed = True
        if side is side.pair.broker:
            self._close_write(side.pair)
        self.times.linger(side.pair)
        self._watched.update(side)

    def shut(self, side: Side) -> None:
        """Say to a socket that has got everything that no more will come."""
        pair = side.pair
        if side is pair.client and (side.ended or not pair.unsent_to_client):
            # The broker has closed, and the client has all that it sent.
            pair.drop_untaken()
            self.close(pair)
            return
        if side.write_closed:
            return
        if side is pair.client:
            # Closed now, Linux would drop what it cannot send yet, if anything comes that is not
            # read. So the client is read on, in vain, until it closes, or all of that is sent.
            side.write_closed = True
        try:
            side.socket.shutdown(socket.SHUT_WR)
        except OSError:
            if side is pair.client:
                self.close(pair)
            else:
                # It is gone, and may have answered before.
                self._close_write(pair)

    def refused(self, side: Side, error: OSError) -> None:
        """Go on without what cannot be sent, or close the link.

        A broker that has closed may have answered before: its bytes are read to their end,
        which is what closes the link then.
        """
        if side is side.pair.broker and isinstance(error, ConnectionError):
            self._close_write(side.pair)
        else:
            self.close(side.pair)

    def _close_write(self, pair: SocketPair) -> None:
        """Send a broker nothing more: one that closes has closed both directions."""
        pair.broker.write_closed = True
        self._queues.drop(pair.broker)
        pair.link.requests.abandon()
        self._watched.update(pair.broker)
        self._watched.update(pair.client)

    # Both end.

    def close(self, pair: SocketPair) -> None:
        """Close both sockets."""
        if not pair.open:
            return
        pair.open = False
        pair.link.state.traffic.links_open -= 1
        self._pairs.pop(pair.link.state.number, None)
        # What has called this may still look at its sides.
        self._closed.append(pair)
        if not pair.moves:
            # Who ends a connection keeps its port for a minute, and there are only so many. Nothing
            # was said that a reset could cost.
            _reset_when_closed(pair.broker)
        _do_all(
            partial(self.times.forget, pair),
            partial(self._watched.forget, pair.client),
            partial(self._queues.drop, pair.client),
            pair.client.socket.close,
            partial(self._watched.forget, pair.broker),
            partial(self._queues.drop, pair.broker),
            pair.broker.socket.close,
            # It reports what it has counted.
            pair.link.close,
            partial(self._reports.events, pair.link.state),
            partial(self._hold_timer.forget, pair.link.state.number),
        )

    def give_up(self, pair: SocketPair) -> None:
        """Close a link that is not served any more; without an answer the client tries again."""
        if pair.answered:
            self.close(pair)
        else:
            self.turn_away(pair)

    def turn_away(self, pair: SocketPair) -> None:
        """Close a link on which the broker has said nothing; see
        :mod:`leader_hints.net.clients.reset`."""
        _reset_when_closed(pair.client)
        self.close(pair)

    def client_at_fault(self, pair: SocketPair, fault: str) -> None:
        """Close a link whose client sent what cannot be served."""
        route = pair.link.state.route
        self._reports.emit(BadClientBytes(route=route.name, client=pair.client_name, reason=fault))
        self.close(pair)
        if pair.link.state.topic_ids.without_ids:
            self._reports.doubt(route)

    def broker_at_fault(self, pair: SocketPair, fault: str) -> None:
        """Close a link whose broker sent what cannot be passed on."""
        state = pair.link.state
        event = BadBrokerBytes(route=state.route.name, link=state.number, reason=fault)
        self._reports.emit(event)
        self.close(pair)

    def failed(self, pair: SocketPair, error: Exception) -> None:
        """Close a link that a defect of the proxy has ended."""
        self._reports.failed(pair.link.state, error)
        try:
            self.give_up(pair)
        except Exception as another:
            # The first may have left in disorder what is done at the end of a link.
            self._reports.failed(pair.link.state, another)

    def drain(self, exempt: Callable[[LinkState], bool]) -> Iterator[None]:
        """Close the links that have no request under way, but ``exempt`` ones, one in each step.

        From the first step on links close when their last request is answered.
        """
        self.draining = exempt
        for pair in list(self._pairs.values()):
            self.close_at_rest(pair, quiet=False)
            yield

    def take_no_more(self) -> Iterator[None]:
        """While the process ends, take no further request of the links that are still open.

        One link in each step. A client that always has several requests under way never rests by
        itself. What is not taken never gets to the broker, so it is safe to send it again.
        """
        assert self.draining is not None
        for pair in list(self._pairs.values()):
            if pair.open and pair.link.matched and not self.draining(pair.link.state):
                pair.link.take_no_more()
                self._watched.update(pair.client)
            yield

    def close_at_rest(self, pair: SocketPair, *, quiet: bool) -> None:
        """While the process ends, close a link that has no request under way.

        ``quiet``: it has moved no byte for a while.
        """
        link = pair.link
        assert self.draining is not None
        if not pair.open or self.draining(link.state):
            return
        if (not link.resting if link.matched else not quiet) or pair.queued:
            return
        pair.drop_untaken()
        self.give_up(pair)

    def close_outdated(self, pair: SocketPair) -> None:
        """Close a link whose client is to be offered other versions, once nothing is under way."""
        if pair.open and pair.link.matched and pair.link.resting and not pair.queued:
            pair.drop_untaken()
            self.close(pair)

    # Their time is over.

    def sweep(self, now: float) -> Iterator[None]:
        """End links whose time is over, and free the memory of those that have ended.

        One link in each step: there may be thousands.
        """
        yield from self._free()
        for pair in self.times.silent(self._pairs, now):
            if pair is not None:
                self._expire(pair, "first_bytes_ms")
            yield
        everyone = self.draining is not None or self._reviews_all
        for pair in list(self._pairs.values() if everyone else self.times.ending):
            try:
                if pair.open:
                    self._review(pair, now)
            except Exception as error:
                self.failed(pair, error)
            yield

    def _review(self, pair: SocketPair, now: float) -> None:
        review = self.times.review(pair, now)
        if pair.client.write_closed and not pair.unsent_to_client:
            pair.drop_untaken()
            self.close(pair)
        elif review.limit:
            self._expire(pair, review.limit)
        elif self.draining is not None and not review.moves:
            self.close_at_rest(pair, quiet=True)

    def _expire(self, pair: SocketPair, limit: str) -> None:
        route = pair.link.state.route.name
        self._reports.emit(LimitReached(route=route, limit=limit, client=pair.client_name))
        if pair.moves:
            self.give_up(pair)
        else:
            # It awaits no answer.
            self.close(pair)

    def _free(self) -> Iterator[None]:
        """Free the memory of links that have ended.

        Else it would only be freed when Python looks through everything for what cannot be reached:
        that is seldom, and stops all links for a while.
        """
        closed, self._closed = self._closed, []
        while closed:
            closed.pop().part()
            yield


def _reset_when_closed(side: Side) -> None:
    with suppress(OSError):
        side.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)


def _do_all(*steps: Callable[[], object]) -> None:
    """Do all steps, even if a defect ends some of them; raise the last one that did.

    Else what is left of a link would stay for ever, or its sockets be ready with nobody to serve
    them.
    """
    defect: Exception | None = None
    for step in steps:
        try:
            step()
        except Exception as error:
            defect = error
    if defect is not None:
        raise defect
