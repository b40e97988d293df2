"""Rules about the machine: its file descriptors and its clock."""

from collections.abc import Iterator

from leader_hints.check.facts import MachineFacts
from leader_hints.check.findings import Finding, finding
from leader_hints.core.descriptors import connections_within, descriptors_for

#: If the number of clients is not known, so many descriptors are enough.
_PLENTY = 8192


def judge_descriptors(machine: MachineFacts) -> Iterator[Finding]:
    """Whether the file descriptors last for the clients that there are."""
    allowed, now = machine.descriptors, machine.connections
    clients = connections_within(allowed)
    if now is None:
        if allowed < _PLENTY:
            yield finding("descriptors_unknown", allowed=allowed, clients=clients)
        else:
            yield finding(
                "descriptors_enough", allowed=allowed, clients=clients, now="an unknown number of"
            )
    elif now > clients:
        needed = descriptors_for(now)
        yield finding("descriptors_few", allowed=allowed, needed=needed, now=now)
    else:
        yield finding("descriptors_enough", allowed=allowed, clients=clients, now=now)


def judge_clock(machine: MachineFacts) -> Iterator[Finding]:
    """Whether times of this machine can be compared with those of others."""
    if machine.synchronised is None:
        yield finding("clock_unknown")
    elif machine.synchronised:
        yield finding("clock_synchronised", error_ms=machine.clock_error_ms)
    else:
        yield finding("clock_not_synchronised")
