"""Readiness: what becomes of clients when their brokers are upgraded to Kafka 4.

The verdicts are those of `leader-hints readiness`, by its own rules: a copy of them would age.

Tested in ``tests/pipeline/report/test_readiness.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints.apis.oldest_versions import RELEASES
from leader_hints.check.upgrade_rules import Clients, ClientVerdict, Seen, Verdict
from leader_hints.core.versions.asked_versions import ClientName
from leader_hints_report.report.listings import READINESS, VERDICTS, Row, Rows
from leader_hints_report.report.period import Tables
from leader_hints_report.tables import columns

#: Client ids, addresses and principals that a row names.
_NAMED: Final = 20
_WORDS: Final = dict(zip((Verdict.REFUSED, Verdict.IN_PART, Verdict.READY), VERDICTS, strict=True))
_CLIENT: Final = ("cluster", "software", "software_version", "client_id")
#: Clients that are alike: those of one cluster and software that ask the same.
_ALIKE: Final = ("cluster", "software", "software_version", "asked")


def readiness(tables: Tables) -> Rows:
    """The rows of the listing: clients that are alike have one. Those that are refused first."""
    found = alike(tables.table(columns.ASKED_VERSIONS.name)).limit(READINESS.most + 1).collect()
    rows = [_row(one.asDict(recursive=True)) for one in found[: READINESS.most]]
    rows.sort(key=lambda row: VERDICTS.index(str(row["verdict"])))
    return Rows(rows=tuple(rows), more=len(found) > READINESS.most)


def alike(asked: DataFrame) -> DataFrame:
    """Clients of the table `asked_versions` that are alike: how many, and who some of them are.

    What brokers refuse comes first, so that no limit hides it; then what most clients do.
    """
    api = F.struct("api_key", F.min("oldest").alias("oldest"), F.max("newest").alias("newest"))
    # A client may only have named itself on one day and have asked on another.
    by_api = asked.groupBy(*_CLIENT, "api_key").agg(
        api.alias("api"), _last("day"), _together("addresses"), _together("principals")
    )
    apis = F.sort_array(F.collect_list(F.when(F.col("api_key").isNotNull(), F.col("api"))))
    clients = by_api.groupBy(*_CLIENT).agg(
        apis.alias("asked"), _last("last_day"), _together("addresses"), _together("principals")
    )
    return (
        clients.groupBy(*_ALIKE)
        .agg(
            F.count("*").alias("clients"),
            _last("last_day"),
            F.slice(F.sort_array(F.collect_set("client_id")), 1, _NAMED).alias("client_ids"),
            _together("addresses"),
            _together("principals"),
        )
        .withColumn("refused", F.exists("asked", _is_refused))
        .orderBy(F.desc("refused"), F.desc("clients"), *_ALIKE)
    )


def _last(name: str) -> Column:
    return F.max(name).alias("last_day")


def _together(name: str) -> Column:
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(name)))).alias(name)


def _is_refused(api: Column) -> Column:
    """Whether a release that is known refuses the oldest version of an API."""
    newest = [*RELEASES.values()][-1]
    tests = F.lit(False)
    for key, oldest in newest.items():
        tests = tests | ((api["api_key"] == key) & (api["oldest"] < oldest))
    return tests


def _row(found: Mapping[str, Any]) -> Row:
    verdict = _verdict(found)
    return {
        "verdict": _WORDS[verdict.verdict],
        **{name: found[name] for name in ("cluster", "software", "software_version", "clients")},
        "last_day": found["last_day"].isoformat(),
        "client_ids": _some(found["client_ids"], found["clients"]),
        "addresses": _listed(verdict.addresses),
        "principals": _listed(verdict.principals, "; "),
        "asks": ", ".join(map(str, verdict.asked)),
        "refused": "; ".join(_refusals(verdict)) or verdict.lacks,
        **{
            f"in_{release.replace('.', '_')}": _WORDS[verdict.releases[release]]
            for release in RELEASES
        },
        "remedy": verdict.remedy,
        "hints": _hints(verdict),
    }


def _verdict(found: Mapping[str, Any]) -> ClientVerdict:
    name = ClientName.from_journal(str(found["software"]), str(found["software_version"]), "")
    asked = {one["api_key"]: (one["oldest"], one["newest"]) for one in found["asked"]}
    clients = Clients()
    clients.add(Seen(name, asked, tuple(found["addresses"]), tuple(found["principals"])))
    (verdict,) = clients.verdicts()
    return verdict


def _refusals(verdict: ClientVerdict) -> Iterator[str]:
    for one in verdict.refused:
        yield f"{one.api} {one.version}: {one.release} takes {one.oldest} and newer"


def _some(names: Sequence[str], number: int) -> str:
    shown = ", ".join(name or "none" for name in names)
    return f"{shown} and {number - len(names)} more" if number > len(names) else shown


def _listed(origins: Sequence[str], between: str = ", ") -> str:
    shown = between.join(origins[:_NAMED])
    return f"{shown} and {len(origins) - _NAMED} more" if len(origins) > _NAMED else shown


def _hints(verdict: ClientVerdict) -> str:
    if verdict.hints_from:
        return f"from {verdict.hints_from} on"
    return "uses them" if verdict.uses else ""
