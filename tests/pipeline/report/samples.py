"""Numbers of a made-up fleet, to be drawn."""

import math

from leader_hints_report.report import listings
from leader_hints_report.report.listings import Kind, Listing, Numbers, Row, Rows, Value

_CLUSTERS = ("lkc-orders", "lkc-billing", "lkc-metrics")
_SOFTWARE = (
    ("apache-kafka-java", "3.9.1", 0.97),
    ("confluent-kafka-python", "2.5.3-rdkafka-2.5.3", 0.9),
    ("librdkafka", "2.3.0", 0.0),
    ("", "", 0.0),
)
#: Listings that have rows of their own.
_MADE = (
    *("recovery_curve", "incidents", "incident_parts", "broker_hours", "coverage", "hours"),
    *("clusters", "days", "racks_a_day", "readiness"),
)
_BLANK: dict[Kind, Value] = {
    Kind.TEXT: "x",
    Kind.DAY: "2026-01-02",
    Kind.COUNT: 1,
    Kind.RATE: 1.5,
    Kind.MS: 1.5,
    Kind.SECONDS: 1.5,
    Kind.TIME: "2026-01-02T03:04:05.000Z",
    Kind.YES: True,
    Kind.BYTES: 2_500_000_000,
    Kind.PRICE: 12.5,
    Kind.SHARE: 0.25,
}


def row(listing: Listing, **values: Value) -> Row:
    """A row of a listing; what is not given is something that fits."""
    assert values.keys() <= {column.name for column in listing.columns}
    return {column.name: _BLANK[column.kind] for column in listing.columns} | values


def make_numbers(**rows: list[Row]) -> Numbers:
    """Numbers with these rows, by the name of the listing."""
    return Numbers(listings={name: Rows(rows=tuple(of)) for name, of in rows.items()})


def make_fleet() -> Numbers:
    """Numbers with something in each listing, three clusters, and figures as in real life."""
    rows = {
        listing.name: [row(listing)] for listing in listings.LISTINGS if listing.name not in _MADE
    }
    rows["racks_a_day"] = [row(listings.RACKS_A_DAY, part="all")]
    rows["days"] = [
        row(listings.DAYS, day=f"2026-01-0{day}", lost_ms=1e5 * day, cannot_ms=7e4 * day)
        for day in (1, 3)
    ]
    rows["hours"] = [
        row(listings.HOURS, day=f"2026-01-0{day}", hour=hour, lost_ms=1e3 * (1 + day * hour))
        for day in (1, 3)
        for hour in range(0, 24, 3)
    ]
    rows["clusters"] = [
        row(
            listings.CLUSTERS,
            cluster=cluster,
            first_day="2026-01-01",
            last_day="2026-01-03",
            moved=3456,
            errors=10_000,
            hints=7_000,
            lost_ms=1.2e6,
        )
        for cluster in _CLUSTERS
    ]
    rows["recovery_curve"] = [
        row(
            listings.CURVE,
            api=api,
            hinted=hinted,
            percent=percent,
            recovery_ms=math.exp(percent / 18) * (3 if hinted else 40),
        )
        for api in ("Fetch", "Produce")
        for hinted in (False, True)
        for percent in range(101)
    ]
    rows["incidents"] = [
        row(
            listings.INCIDENTS,
            cluster=_CLUSTERS[number % 3],
            kind=("roll", "reassignment", "failure", "other")[number % 4],
            began=f"2026-01-0{1 + number // 6}T{number % 6 * 4:02}:10:00.000Z",
            seconds=600.0 * (number % 5),
            lost_ms=1e5 / (number + 1),
            rule="each broker left once and came back",
        )
        for number in range(18)
    ]
    rows["incident_parts"] = [
        row(
            listings.INCIDENT_PARTS,
            **{
                "cluster": rows["incidents"][0]["cluster"],
                "began": rows["incidents"][0]["began"],
                "part": part,
                "name": f"{part}-{number}",
            },
        )
        for part in ("topic", "client", "broker")
        for number in range(3)
    ]
    rows["broker_hours"] = [
        row(
            listings.BROKER_HOURS,
            cluster=cluster,
            node=node,
            hour=hour,
            lost_ms=10.0 ** ((node * 7 + hour * 5) % 6),
        )
        for cluster in _CLUSTERS[:2]
        for node in range(1, 7)
        for hour in range(24)
        if (node + hour) % 3
    ]
    rows["coverage"] = [
        row(
            listings.COVERAGE,
            software=software,
            software_version=version,
            api=api,
            errors=1000 - 100 * number,
            given=round((1000 - 100 * number) * share),
            would_give=30 if share else 0,
            saved_ms=45_000.0 if share else None,
            saved_low_ms=30_000.0 if share else None,
            saved_high_ms=60_000.0 if share else None,
        )
        for number, (software, version, share) in enumerate(_SOFTWARE)
        for api in ("Produce", "Fetch")
    ]
    rows["readiness"] = [
        row(
            listings.READINESS,
            verdict=verdict,
            software=software,
            software_version=version,
            clients=clients,
            client_ids="billing-1, billing-2, a-client-with-a-long-name-7f3c9a",
            addresses="192.0.2.7, 192.0.2.8, 2001:db8::1234:5678",
            asks="Produce 2-7, Fetch 4-11, ListOffsets 1-5, Metadata 5-12, OffsetCommit 1",
            refused=refused,
            remedy="upgrade sarama to 1.30.1 or newer" if verdict == "will be refused" else "",
        )
        for verdict, software, version, clients, refused in (
            ("will be refused", "sarama", "1.19.0", 12, "Produce 2: 4.0 takes 3 and newer"),
            ("seen in part", "", "", 3, "it has not written or read yet"),
            ("will be served", "apache-kafka-java", "3.6.2", 1234, ""),
        )
    ]
    return make_numbers(**rows)
