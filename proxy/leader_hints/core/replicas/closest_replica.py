"""Which replica of a partition a consumer is to read from; the rule of ``closest_replica``.

KIP-392 has the leader name it. What is named here must hold for every client: Java and sarama use
records that stand beside a preferred replica, and move behind them; librdkafka and franz-go skip
these, and read them again from the replica. So a response may have both.

kafka-python uses them, too, but it comes back to the leader after each response that names no
replica, as all of a follower's do (3.0.12, ``update_preferred_read_replica``). With records in the
leader's it would read half of all there. So these are taken out, as a broker's selector does it. A
follower might name itself each time, but once Metadata has no such broker any more, ``poll`` raises
UnknownBrokerIdError.
"""

import re
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Final, NamedTuple
from zlib import crc32

#: Clients that come back after each response, by what they call themselves (KIP-511).
_COMES_BACK: Final = "kafka-python"
#: From which version on sarama asks the leader when a follower lacks an offset (OFFSET_OUT_OF_RANGE
#: in its consumer.go). Before, it ends what it reads of that partition for good. It calls itself
#: "dev" where it was built from its sources, or from copies of them.
_SARAMA: Final = re.compile(r"sarama/(?:v?(\d{1,9})\.(\d{1,9})\.(\d{1,9}))?", re.ASCII)
_SARAMA_ASKS: Final = (1, 61, 1)


class Outcome(StrEnum):
    """What became of a partition in a response to a consumer that names a rack.

    ``NAMED``: a replica in the consumer's rack. ``RETURNED``: the leader, since this broker is not
    in sync, and no replica in the rack is. The others leave it as it is: ``ERROR``: the partition
    failed. ``SELECTOR``: brokers of the cluster choose themselves. ``NO_RACK``: this broker's rack
    is not known. ``UNKNOWN``: it is not known which broker this is, which one leads, or what is in
    sync, or only at another leader epoch than the consumer's, or brokers contradict each other.
    ``MOVED``: the leader has just moved. ``OLDEST``: the consumer reads the older half of a log
    whose beginning was deleted; a follower may have deleted more. ``SAME_RACK``: this broker leads,
    in the consumer's rack. ``FOLLOWER``: it is a follower there, in sync. ``NO_REPLICA``: no
    replica in sync is in the rack. ``PAUSED``: those that are were named lately, and the consumer
    has come back, or has read nothing there. ``CLIENT``: the consumer would end if the replica
    lacked what it asks for.
    """

    NAMED = "named"
    RETURNED = "returned"
    ERROR = "error"
    SELECTOR = "selector"
    NO_RACK = "no rack"
    UNKNOWN = "unknown"
    MOVED = "moved"
    OLDEST = "oldest records"
    SAME_RACK = "same rack"
    FOLLOWER = "follower in sync"
    NO_REPLICA = "no replica"
    PAUSED = "paused"
    CLIENT = "client"


class Known(NamedTuple):
    """What is known of a partition at one leader epoch: node ids."""

    leader: int
    in_sync: Collection[int]


class Consumer(NamedTuple):
    """A consumer: ``rack`` as it names it; ``identity``: by which it is spread, always the same."""

    rack: str
    identity: bytes


class Choice(NamedTuple):
    """The node to be named, ``None``: none; and why."""

    node: int | None
    outcome: Outcome


def closest(
    own: int,
    known: Known,
    consumer: Consumer,
    rack_of: Callable[[int], str],
    alive: Callable[[int], bool],
    lately: Collection[int],
) -> Choice:
    """Return which node the broker ``own`` is to name to a consumer that has asked it.

    A follower names one too: a leader that became one may go on to be asked (brokers of 2.4 forget
    the epochs of a fetch session, KAFKA-9338). ``rack_of``: "" where it is not known. ``alive``:
    whether clients find a node. ``lately``: nodes that were named for this partition to this
    consumer, which has come back since.
    """
    rack, leads, serves = rack_of(own), own == known.leader, own in (known.leader, *known.in_sync)
    if serves and not rack:
        return Choice(None, Outcome.NO_RACK)
    if serves and rack == consumer.rack:
        return Choice(None, Outcome.SAME_RACK if leads else Outcome.FOLLOWER)
    fitting = [
        node
        for node in known.in_sync
        if node != own and rack_of(node) == consumer.rack and alive(node)
    ]
    left = [node for node in fitting if node not in lately]
    if left:
        return Choice(max(left, key=lambda node: _weight(consumer.identity, node)), Outcome.NAMED)
    if not serves and known.leader not in lately:
        return Choice(known.leader, Outcome.RETURNED)
    return Choice(None, Outcome.PAUSED if fitting or not serves else Outcome.NO_REPLICA)


def comes_back(software: str) -> bool:
    """Whether a client asks the leader again after each response of a replica that was named.

    ``software``: as name/version, "" if it has not said.
    """
    return software.partition("/")[0] == _COMES_BACK


def ends_where_offsets_lack(software: str) -> bool:
    """Whether a client reads no more of a partition if a replica that was named lacks its offset.

    That replica may have fallen behind since it was known to be in sync. ``software``: as for
    :func:`comes_back`.
    """
    sarama = _SARAMA.match(software)
    return (
        sarama is not None and tuple(int(number or 0) for number in sarama.groups()) < _SARAMA_ASKS
    )


def _weight(identity: bytes, node: int) -> tuple[int, int]:
    """Return what spreads consumers over nodes so that each stays where it is as others come."""
    return crc32(b"%d" % node, crc32(identity)), node


def may_be_deleted(position: int | None, start: int, high: int) -> bool:
    """Whether a follower may lack what a consumer reads, since each broker deletes by itself.

    ``position``: offset from which on it reads, ``None`` if that is not known; ``start`` and
    ``high``: where the leader's log begins and ends. At OFFSET_OUT_OF_RANGE below the log's begin
    librdkafka resets its position also on a follower, and sarama ends.
    """
    if start <= 0:
        return False
    return position is None or 2 * (position - start) < high - start
