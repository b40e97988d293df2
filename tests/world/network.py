"""Connections in memory: what is sent arrives later, in order; hosts refuse, hang and reset."""

from collections.abc import Callable

import trio

from tests.world.schedule import Schedule

#: Takes the far end of a new connection; false: it is refused.
Accept = Callable[["End"], bool]


class End:
    """One end of a connection. ``principal``: who connected. ``detour``: seconds by which all that
    is sent from here takes longer.

    ``taken``: called with what arrives; ``ended``: called once the other end has closed.
    """

    def __init__(self, network: "Network", principal: str) -> None:
        self._network = network
        self._peer: End | None = None
        self.principal = principal
        self.detour = 0.0
        self.open = True
        self.taken: Callable[[bytes], None] = lambda data: None
        self.ended: Callable[[], None] = lambda: None

    def join(self, other: "End") -> None:
        """Join two ends."""
        self._peer, other._peer = other, self

    def send(self, data: bytes) -> None:
        """Send bytes, if it is open."""
        if self.open and data:
            self._network.schedule.after(self._network.latency + self.detour, self._arrive, data)

    def close(self) -> None:
        """Close it; the other end learns of that when all that was sent has arrived."""
        if self.open:
            self.open = False
            self._network.schedule.after(self._network.latency + self.detour, self._leave)

    def fail(self) -> None:
        """Take it that there was nobody at the other end."""
        if self.open:
            self.open = False
            self.ended()

    def _arrive(self, data: bytes) -> None:
        peer = self._peer
        if peer is not None and peer.open:
            peer.taken(data)

    def _leave(self) -> None:
        if self._peer is not None:
            self._peer.fail()


class Network:
    """Hosts, by address. ``latency``: seconds each way."""

    def __init__(self, schedule: Schedule, latency: float) -> None:
        self.schedule = schedule
        self.latency = latency
        self.hosts: dict[tuple[str, int], Accept] = {}

    def connect(self, address: tuple[str, int], principal: str, detour: float = 0.0) -> End | None:
        """Return the near end of a new connection, ``None`` where it is refused."""
        near, far = End(self, principal), End(self, principal)
        near.detour = far.detour = detour
        near.join(far)
        accept = self.hosts.get(address)
        return near if accept is not None and accept(far) else None

    def attempt(self, address: tuple[str, int], principal: str, detour: float) -> End:
        """As :meth:`connect`; that it is refused is learnt later, as that a connection has ended.

        So it is the same where a proxy accepts it first, and then does not reach its broker.
        """
        near = self.connect(address, principal, detour)
        if near is None:
            near = End(self, principal)
            self.schedule.after(self.latency + detour, near.fail)
        return near


class Stream(trio.abc.Stream):
    """An end as Trio has streams."""

    def __init__(self, end: End) -> None:
        self._end = end
        self._data = bytearray()
        self._news = trio.Event()
        end.taken = self._taken
        end.ended = self._news_came

    def _taken(self, data: bytes) -> None:
        self._data += data
        self._news_came()

    def _news_came(self) -> None:
        self._news.set()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if not self._end.open:
            raise trio.BrokenResourceError
        self._end.send(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._data and self._end.open:
            self._news = trio.Event()
            await self._news.wait()
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        return data

    async def aclose(self) -> None:
        self._end.close()
        await trio.lowlevel.checkpoint()
