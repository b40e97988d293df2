"""Bytes between racks, against events that were added up one by one."""

import random
from collections import defaultdict
from datetime import timedelta

from pyspark.sql import SparkSession

from leader_hints_report.tables.racks import rack_reads
from tests.pipeline.lines import BEGIN, Event, frame, read, replica

_NAMES = ("same_bytes", "crossing_bytes", "avoidable_bytes", "named", "returned")
_DAY_S = 86_400


def test_bytes_are_those_of_all_events(spark: SparkSession) -> None:
    """Whatever came twice counts once; a broker whose rack is not known is in no rack."""
    draw = random.Random(27)
    events: list[Event] = []
    expected: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * len(_NAMES))
    for seq in range(400):
        day, sidecar = draw.randrange(2), draw.choice("ab")
        topic, client = draw.choice("tu"), draw.choice(["app", "other"])
        rack, own = draw.choice("xy"), draw.choice(["x", "y", None])
        of = {"topic": topic, "client_id": client, "rack": rack, "sidecar": sidecar}
        cluster = draw.choice(["c", None])
        date = (BEGIN + timedelta(days=day)).date()
        sums = expected[date, cluster or "unknown", topic, client, rack]
        if draw.random() < 0.5:
            size, avoidable = draw.randrange(10**10), draw.randrange(1000)
            one = read(
                day * _DAY_S,
                seq,
                size,
                broker_rack=own,
                avoidable_bytes=avoidable,
                cluster=cluster,
                **of,
            )
            sums[0 if own == rack else 1] += size
            sums[2] += avoidable
        else:
            observed, returned = draw.random() < 0.3, draw.random() < 0.3
            one = replica(
                day * _DAY_S, seq, observed=observed, returned=returned, cluster=cluster, **of
            )
            sums[3] += not observed and not returned
            sums[4] += not observed and returned
        events += [one] * draw.choice([1, 1, 2])
    rows = rack_reads(frame(spark, events)).collect()
    found = {
        (row["day"], row["cluster"], row["topic"], row["client_id"], row["rack"]): [
            row[name] for name in _NAMES
        ]
        for row in rows
    }
    assert found == expected
