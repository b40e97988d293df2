"""The kernel's rules by which published ports lead into containers."""

import shlex
from pathlib import Path

from tests.deploy.tools import run

_NAT = ("iptables", "--wait", "-t", "nat")
#: How the names of the chains begin that CNI makes.
_CHAINS = "CNI-"


def forget_dead(network: str) -> None:
    """Remove the rules of a network's containers that run no more.

    Who kills a run, or the machine's session around it, leaves them there, and later containers'
    ports lead to the addresses of the dead ones. A storage knows its own containers only, and each
    checkout has a storage.
    """
    chains = set()
    for line in run(*_NAT, "-S").stdout.splitlines():
        words = shlex.split(line)
        named = [word for word in words if f'name: "{network}"' in word]
        if named and not _runs(named[0].rpartition('id: "')[2].rstrip('"')):
            run(*_NAT, "-D", *words[1:])
            # Within a chain of its own a rule ends with ACCEPT or MASQUERADE.
            chains.add(words[words.index("-j") + 1])
    for chain in sorted(chains):
        if chain.startswith(_CHAINS):
            run(*_NAT, "-F", chain)
            run(*_NAT, "-X", chain)


def _runs(container: str) -> bool:
    """Whether a container has its monitor, which has its id among its arguments."""
    processes = Path("/proc").glob("[0-9]*")
    return any(container.encode() in _arguments(process) for process in processes)


def _arguments(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # It has ended meanwhile.
        return b""
