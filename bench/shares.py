"""What a process spends its time on, from looks at its stack."""

import linecache
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import trio

from tests.harness.maven import ROOT

_PROXY = ROOT / "proxy"
_TRIO = Path(trio.__file__).parent

#: System calls, by what stands in the line that makes them; looked for in this order.
_CALLS = {
    ".recv": "receiving (recv)",
    ".send": "sending (send, sendmsg)",
    "splice(": "moving what nobody looks at (splice)",
    ".poll(": "waiting, and asking which sockets are ready (epoll)",
}
#: Our own code, by folder.
_LAYERS = {
    "net": "sockets and their order (proxy/net)",
    "core": "exchanges, links and plans (proxy/core)",
    "apis": "looking into requests and responses (proxy/apis, proxy/wire)",
    "wire": "looking into requests and responses (proxy/apis, proxy/wire)",
}
#: In what the stacks of threads begin with. Those of the proxy wait, which looks like work from
#: outside.
_OTHER_THREAD = "_bootstrap"
_EVENT_LOOP = "Trio"
_ELSE = "all else"
#: All that is reported, in the order of the table.
PLACES = (*_CALLS.values(), *dict.fromkeys(_LAYERS.values()), _EVENT_LOOP, _ELSE)


class Frame(NamedTuple):
    """A function under way, as py-spy names it with full file names."""

    function: str
    file: Path
    line: int

    @classmethod
    def read(cls, text: str) -> "Frame":
        """Read ``function (file:line)``."""
        function, _, place = text.rpartition(" (")
        file, _, line = place.removesuffix(")").rpartition(":")
        return cls(function, Path(file), int(line) if line.isdecimal() else 0)

    @property
    def is_looked_at(self) -> bool:
        """Whether it is ours, or Trio's."""
        return self.file.is_relative_to(_PROXY) or self.file.is_relative_to(_TRIO)

    @property
    def place(self) -> str:
        """The category of a function's time, the proxy's or Trio's."""
        source = linecache.getline(str(self.file), self.line)
        for mark, place in _CALLS.items():
            if mark in source:
                return place
        if self.file.is_relative_to(_TRIO):
            return _EVENT_LOOP
        return _LAYERS.get(self.file.relative_to(_PROXY).parts[0], _ELSE)


def shares(folded: Iterable[str]) -> Mapping[str, float]:
    """Return the share of each of :data:`PLACES`, from 0 to 1.

    ``folded``: lines of frames, outermost first, joined by semicolons, and how often they were
    seen: py-spy's format ``raw``. What a library is called for is its caller's. Only the main
    thread is looked at.
    """
    seen: Counter[str] = Counter()
    for line in folded:
        stack, _, count = line.strip().rpartition(" ")
        frames = [Frame.read(text) for text in stack.split(";")]
        if _OTHER_THREAD in frames[0].function:
            continue
        ours = [frame for frame in frames if frame.is_looked_at]
        seen[ours[-1].place if ours else _ELSE] += int(count)
    whole = seen.total()
    return {place: seen[place] / whole if whole else 0.0 for place in PLACES}
