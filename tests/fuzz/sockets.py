"""Attack a proxy's listener and its admin server: it must not end, nor keep too much, nor make
others wait.

``python -m tests.fuzz.sockets``. The broker behind it answers what real brokers answered, some of
it mutated, and the truth to the proxy's own questions and to one client that is well behaved.
The attacks of a seed are always the same; what comes between them is up to the sockets.
"""

import argparse
import os
import random
import sys
import time
from functools import partial
from pathlib import Path

import trio

from tests.fuzz.admin_attacks import ADMIN_ATTACKS, AdminAttacker
from tests.fuzz.attacks import ATTACKS, Attacker
from tests.fuzz.mutate import mutated
from tests.fuzz.timed import VARIABLE
from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.trial import run_trial
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.recordings import recorded_exchanges
from tests.soak.client import Counts, connect, keep_busy
from tests.soak.watch import at_rest, resident_bytes, settled

_SETTINGS = """\
limits:
  link_buffer_bytes: 1048576
  process_buffer_bytes: 8388608
  queued_bytes: 8388608
  linger_ms: 1000
"""
#: Beyond what the process has at rest: twice what the settings allow, and what Python keeps of it.
_MOST_MEMORY = 128 << 20
_LONGEST_STEP = 0.05
_AT_ONCE = 12
#: Of so many attacks one is on the admin server.
_ADMIN_IN_EVERY = 4
#: The first request of the one that behaves well, and the client id of the proxy. A mutated request
#: may well have a client id of one letter.
_BEHAVED = messages.api_versions_request(1)
_PROXY = b"leader-hints"


class _Parrot(FakeBroker):
    """Answers attackers with what some broker said once, or with nonsense."""

    def __init__(self, address: Address, chance: random.Random) -> None:
        super().__init__(1, [messages.Broker(1, *address)], {"t": [(1, 5)]})
        self._chance = chance
        self._recorded = [e.answered for e in recorded_exchanges() if e.answered]
        self.answers[messages.PRODUCE] = lambda correlation, version: messages.produce_response(
            correlation, {0: 0}
        )

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer on one connection, by who speaks first.

        One behind which a client said nothing is reset, not closed: the proxy keeps no port for it.
        """
        try:
            first = bytes(await stream.receive_some())
        except trio.BrokenResourceError:
            return
        named = first[12:].startswith(len(_PROXY).to_bytes(2) + _PROXY)
        if named or first == _BEHAVED:
            await super().serve(_Behind(stream, first))
            return
        async with stream:
            with trio.move_on_after(30):
                await self._parrot(stream)

    async def _parrot(self, stream: trio.abc.Stream) -> None:
        try:
            while chunk := await stream.receive_some():
                if self._chance.random() < 0.5:
                    continue
                answer = self._chance.choice(self._recorded)
                if self._chance.random() < 0.5:
                    answer = mutated(answer, self._recorded, self._chance)
                if len(chunk) >= 12 and len(answer) >= 8:
                    answer = answer[:4] + bytes(chunk[8:12]) + answer[8:]
                await stream.send_all(answer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


class _Behind(trio.abc.Stream):
    """A stream of which something was read already."""

    def __init__(self, stream: trio.abc.Stream, first: bytes) -> None:
        self._stream = stream
        self._first = first

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See Trio."""
        first, self._first = self._first, b""
        return first or bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See Trio."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """See Trio."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """See Trio."""
        await self._stream.aclose()


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
    print(f"seed {options.seed}", flush=True)
    return run_trial("attacks", partial(_fuzz, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sockets", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="end after so long")
    parser.add_argument("--attacks", type=int, default=1 << 62, help="end after so many")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    return parser.parse_args()


async def _fuzz(options: argparse.Namespace, folder: Path) -> None:
    chance = random.Random(options.seed)
    (port,) = free_ports(1)
    listen: Address = ("127.0.0.1", port)
    config = folder / "leader-hints.yaml"
    config.write_text(_SETTINGS)
    os.environ[VARIABLE] = str(folder / "longest-step")
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        parrot = _Parrot(listen, chance)
        nursery.start_soon(trio.serve_listeners, parrot.serve, listeners)
        proxy = ProxyProcess(
            [(listen, listeners[0].socket.getsockname())],
            folder / "proxy.log",
            arguments=["--config", str(config), "--log-level", "info"],
            program="tests.fuzz.timed",
        )
        # It is asked from a thread where that takes long: the broker lives in this one.
        with proxy:
            await _attack(options, listen, proxy, folder / "longest-step")
        nursery.cancel_scope.cancel()


async def _attack(
    options: argparse.Namespace, listen: Address, proxy: ProxyProcess, longest: Path
) -> None:
    recorded = recorded_exchanges()
    made = dict.fromkeys([*ATTACKS, *ADMIN_ATTACKS], 0)
    numbers = iter(range(options.attacks))
    behaved = Counts()
    behaved.times = []
    before = await settled(proxy)
    without = most = resident_bytes(proxy.pid)
    end = trio.current_time() + options.seconds
    async with trio.open_nursery() as nursery:

        async def go_on() -> None:
            for number in numbers:
                chance = random.Random(options.seed << 40 | number)
                if number % _ADMIN_IN_EVERY:
                    await Attacker(listen, recorded, chance).attack(made)
                else:
                    await AdminAttacker(proxy.admin_address, chance).attack(made)
                if trio.current_time() >= end:
                    return

        async def watch() -> None:
            nonlocal most
            while True:
                await trio.sleep(0.5)
                proxy.check()
                most = max(most, resident_bytes(proxy.pid))

        good = await connect(listen, behaved)
        nursery.start_soon(keep_busy, good, 0.02)
        nursery.start_soon(watch)
        async with trio.open_nursery() as attackers:
            for _ in range(_AT_ONCE):
                attackers.start_soon(go_on)
        nursery.cancel_scope.cancel()
    await good.stream.aclose()
    step = float(await trio.Path(longest).read_text())
    print(
        f"{made}; {behaved.responses} exchanges of a client that behaves, the longest "
        f"{max(behaved.times) * 1e3:.0f} ms; longest step {step * 1e3:.1f} ms of CPU; memory "
        f"{without / 1e6:.0f} MB at rest, {most / 1e6:.0f} MB at most",
        flush=True,
    )
    await at_rest(proxy, before)
    assert most - without < _MOST_MEMORY, "it keeps too much"
    assert step < _LONGEST_STEP, f"a step of {step * 1e3:.1f} ms"
    assert behaved.responses > 0, "the one that behaves was not served"


if __name__ == "__main__":
    sys.exit(main())
