"""All runs: what is done, on which brokers, and by which ways."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.harness.maven import missing_tools
from tests.runs import groups, kafka_streams, mirror_maker, network, sizes
from tests.runs.families import FAMILIES, Family, losses
from tests.runs.place import Figures
from tests.runs.program import VERSION

#: Where MirrorMaker 2 copies to.
TARGET: Final = "3.6.2-zk"
_OLD: Final = ("2.4.1-zk", "3.6.2-zk")
_ONCE: Final = "an idempotent producer's records are all read, once and in order, by a group"
_COUNTED: Final = (
    "acks=all, each record in a call of its own and several under way, the library's own settings "
    "otherwise; counted is what the producer reports (`acknowledged`, `given up`), what the log "
    "has of it (`lost`: acknowledged, and not there; `doubled`: there more than once), and what a "
    "consumer of the library did not read (`unread`); `stalled`: too few were acknowledged in a "
    "minute to go on"
)


@dataclass(frozen=True)
class Run:
    """``do`` returns its figures, and raises AssertionError where something is not as it should be.

    ``checked`` says what that is. ``brokers``: those that it is done on, by their names in the
    matrix. ``ways``: whether direct. ``missing`` says what it needs and is not there. ``target``:
    it goes to a second cluster, a place of which ``do`` gets too.
    """

    name: str
    title: str
    checked: str
    do: Callable[..., Figures]
    brokers: Sequence[str]
    ways: Sequence[bool] = (False,)
    missing: Callable[[], str | None] = missing_tools
    target: bool = False


def _family(family: Family) -> Run:
    name = re.sub(r"\W+", "-", family.name).strip("-")
    return Run(
        f"client-{name}",
        family.name,
        _COUNTED,
        partial(losses, family),
        ("3.6.2-zk",),
        ways=(True, False),
        missing=family.missing,
    )


_ALL: Final = (
    Run(
        "consumer-protocol",
        "`group.protocol=consumer` (KIP-848), Java 4.1.1",
        "two members, one leaves: each record is read, and their connections pass byte for byte "
        "(`connections unchanged`)",
        groups.consumer_protocol,
        ("4.1.1-kraft",),
    ),
    Run(
        "share-group",
        "share group (KIP-932), Java 4.1.1",
        "two members acknowledge each record, one leaves: each record is read. A record is read "
        "again where its former leader refused the acknowledgement (`acknowledgements refused`): "
        "it could not write it any more, since the next leader's epoch was known. The slower the "
        "machine, the more there are: 28 to 659 of some 1,000 in eight runs direct, 11 to 330 in "
        "eight through, in turn. Of all these 2,876 records 42 had been acknowledged, 7 of them "
        "direct. What passed is compared (`connections unchanged`)",
        groups.share_group,
        ("4.1.1-kraft",),
        ways=(True, False),
    ),
    Run(
        "streams",
        f"Kafka Streams {VERSION}, `exactly_once_v2`",
        "counts by key in windows of a second: each record made one committed record of the "
        "output, the next count of its key and window. Leaders of input, output, repartition "
        "topic and changelog move, and so do coordinators",
        kafka_streams.window_counts,
        ("2.8.2-zk", "3.6.2-zk", "3.6.2-kraft", "4.1.1-kraft"),
    ),
    Run(
        "mirror-maker",
        f"MirrorMaker 2 ({VERSION}), to {TARGET}",
        "through proxies on both sides: the target has each record; leaders move on both sides",
        mirror_maker.mirror,
        ("2.4.1-zk", "2.8.2-zk"),
        target=True,
    ),
    Run(
        "haproxy",
        "HAProxy, `send-proxy-v2`, in front of the proxy",
        f"the proxy knows the clients' addresses, not HAProxy's; {_ONCE}",
        network.behind_haproxy,
        _OLD,
        missing=network.missing_haproxy,
    ),
    Run("ipv6", "IPv6 listener and upstream", _ONCE, network.over_ipv6, _OLD),
    Run("names", "host names: listener, upstream, advertised", _ONCE, network.by_name, _OLD),
    Run(
        "chain",
        "two proxies in front of each broker",
        f"the front ones report that hints are given behind them; {_ONCE}",
        network.chained,
        _OLD,
    ),
    Run(
        "partitions",
        "3,000 partitions, 300 move at a time",
        "one producer's records are all read, once, by one consumer",
        sizes.many_partitions,
        (*_OLD, "3.6.2-kraft"),
    ),
    Run("large-records", "records of 20 MB", _ONCE, sizes.large_records, _OLD),
    *map(_family, FAMILIES),
)
RUNS: Final[Mapping[str, Run]] = {run.name: run for run in _ALL}
