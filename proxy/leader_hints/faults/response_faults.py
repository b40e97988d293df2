"""Faults of responses: late, slow, cut off, left out, or Metadata of a former state."""

from collections.abc import Iterator

import trio

from leader_hints.apis.keys import ApiKey
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from leader_hints.faults.asking import Asking, OnResponse
from leader_hints.faults.chosen_faults import ChosenFaults
from leader_hints.faults.fault import Action, Begun
from leader_hints.faults.stale_metadata import Leaders, read_told, restage

#: Seconds between two sips of a throttled response.
_SIP_SECONDS = 0.05


class ConnectionCut(Exception):
    """A connection is to end now."""


class ResponseFaults:
    """Applies faults to responses. ``on_response``: called with each that a client gets."""

    def __init__(self, chosen: ChosenFaults, on_response: OnResponse) -> None:
        self._chosen = chosen
        self._on_response = on_response

    async def send(
        self, route: Route, client: trio.abc.SendStream, asking: Asking, frame: bytes
    ) -> None:
        """Send a response to a client.

        :raises ConnectionCut: a fault ends the connection in place of it, or in its middle.
        """
        for begun in self._applying(Action.DELAY, route, asking):
            await trio.sleep(begun.fault.delay_ms / 1000)
            break
        for _ in self._applying(Action.DROP, route, asking):
            raise ConnectionCut
        for _ in self._applying(Action.CUT, route, asking):
            await client.send_all(frame[: len(frame) // 2])
            raise ConnectionCut
        self._on_response(route, asking, frame)
        for begun in self._applying(Action.THROTTLE, route, asking):
            await _send_slowly(client, frame, begun.fault.bytes_per_second)
            return
        await client.send_all(frame)

    def restaged(self, route: Route, asking: Asking, frame: bytes) -> bytes:
        """Return Metadata as it was, if a fault requires it; any other frame as it is.

        A fault applies only where it changes something: clients also ask for brokers alone, and
        for partitions that have not moved. Of several for a partition the oldest applies.
        """
        header = asking.header
        staging = self._chosen.of(Action.STALE_METADATA, route, header)
        if header.key != ApiKey.METADATA or not staging:
            return frame
        now, _ = told = read_told(memoryview(frame), header.version)
        leaders: dict[tuple[str, int], tuple[int, int]] = {}
        hidden: set[int] = set()
        for begun in staging:
            former = {
                at: leader
                for at, leader in begun.told.items()
                if at in now and at not in leaders and begun.fault.chooses_partition(*at)
            }
            hides = begun.fault.hide_nodes & told.nodes - hidden if _names(begun, now) else set()
            if not hides and all(_is_as(now[at], leader) for at, leader in former.items()):
                continue
            if self._chosen.due(begun, route, header):
                leaders |= former
                hidden |= hides
        if not leaders and not hidden:
            return frame
        return restage(memoryview(frame), header.version, header.correlation_id, leaders, hidden)

    def _applying(self, action: Action, route: Route, asking: Asking) -> Iterator[Begun]:
        return self._chosen.applying(action, route, asking.header, asking.about)


async def _send_slowly(client: trio.abc.SendStream, frame: bytes, rate: int) -> None:
    sip = max(int(rate * _SIP_SECONDS), 1)
    for at in range(0, len(frame), sip):
        await trio.sleep(sip / rate)
        await client.send_all(frame[at : at + sip])


def _names(begun: Begun, leaders: Leaders) -> bool:
    """Whether Metadata names something that a fault chooses."""
    fault = begun.fault
    return not fault.chooses_some_partitions or any(fault.chooses_partition(*at) for at in leaders)


def _is_as(now: tuple[int, int], former: tuple[int, int]) -> bool:
    """Whether a leader is the former one, as far as the version says it."""
    return now[0] == former[0] and now[1] in (former[1], UNKNOWN_EPOCH)
