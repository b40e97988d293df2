"""Consumers that name their rack, and read from the replica that a leader's answer names (KIP-392).

They are no clients whose progress is compared: what a follower serves comes late.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.world.clients import KINDS, Client, _Asked, _Connection
from tests.world.happenings import NODES
from tests.world.model.releases import FETCH
from tests.world.model.truth import NO_LEADER
from tests.world.network import Network
from tests.world.wire import Endpoint, Result

#: The rack of each node, as the proxies' configuration has it.
RACKS: Final = {node: f"rack-{node}" for node in NODES}
#: One in each rack: such as use records beside a named replica, and such as skip them. And one
#: that comes back to the leader after each answer of a replica: it gets no records there.
COMES_BACK: Final = "kafka-python"
READERS: Final = (("java", 1), ("librdkafka", 2), ("unhinted", 3), (COMES_BACK, 2))


class Naming(NamedTuple):
    """A replica was named: ``node``, by an answer from ``endpoint`` with an ``error`` or none.

    ``connection``: which of the reader's. ``leader``: as the reader knew then; ``epoch``: with
    which it had asked. ``records``: whether some stood beside it.
    """

    at: float
    place: tuple[str, int]
    node: int
    endpoint: Endpoint
    connection: _Connection
    leader: int
    epoch: int
    error: int
    records: bool


class RackReader(Client):
    """``namings``: all that it got. ``replicas``: from which node it reads, by partition.
    ``shown``: when a partition stood in a response last; one without news does not, in a session.

    It keeps to a replica until an error, a lost connection, or another leader. One that
    ``comes_back`` keeps to it until it is answered without a name.
    """

    def __init__(
        self,
        kind: str,
        rack: str,
        topics: list[str],
        network: Network,
        bootstrap: list[Endpoint],
        say: Callable[[str], None],
    ) -> None:
        name = f"{kind}-reader-in-{rack}"
        super().__init__(name, KINDS[kind], FETCH, topics, network, bootstrap, say)
        self._rack = self.rack = rack
        self.comes_back = kind == COMES_BACK
        self.namings: list[Naming] = []
        self.replicas: dict[tuple[str, int], tuple[int, int]] = {}
        self.shown: dict[tuple[str, int], float] = {}

    def _reads_from(self, place: tuple[str, int], leader: int) -> int:
        node, under = self.replicas.get(place, (leader, leader))
        if under == leader and node in self._endpoints:
            return node
        self.replicas.pop(place, None)
        return leader

    def _takes(
        self, connection: _Connection, asked: _Asked, place: tuple[str, int], result: Result
    ) -> None:
        self.shown[place] = self.now
        known = self.work[place].leader
        # It may have learnt meanwhile that there is none.
        leader = NO_LEADER if known is None else known.node
        if result.preferred >= 0:
            self.namings.append(
                Naming(
                    self.now,
                    place,
                    result.preferred,
                    connection.endpoint,
                    connection,
                    leader,
                    asked.epochs[result.place],
                    result.error,
                    result.records,
                )
            )
            self._say(f"{self.name} is told to read {place[0]}-{place[1]} from {result.preferred}")
            self.replicas[place] = result.preferred, leader
        elif result.error or self.comes_back:
            self.replicas.pop(place, None)

    def begin_again(self) -> None:
        """See :meth:`tests.world.clients.Client.begin_again`."""
        self.replicas = {}
        super().begin_again()

    def lost(self, connection: _Connection) -> None:
        """See :meth:`tests.world.clients.Client.lost`."""
        gone = {n for n, endpoint in self._endpoints.items() if endpoint == connection.endpoint}
        self.replicas = {at: read for at, read in self.replicas.items() if read[0] not in gone}
        super().lost(connection)
