"""What `leader-hints check` prints: as JSON for programs, or as lines for people."""

import json
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from leader_hints.check.client_support import ClientSupport, support_of_kinds
from leader_hints.check.facts import RouteFacts
from leader_hints.check.findings import Finding, Severity
from leader_hints.check.rules import must_fix
from leader_hints.observe.logs import escape

_HEADINGS: Final = {
    Severity.PROBLEM: "problems",
    Severity.ADVICE: "advice",
    Severity.FINE: "fine",
}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FindingReport(_Part):
    """One finding. docs/troubleshooting.md explains each code."""

    code: str = Field(description="Names the kind of finding. A code never changes its meaning.")
    severity: Severity = Field(
        description="`mend`: a problem; hints or clients fail until it is fixed. `advice`: it "
        "works with limits, or could not be checked. `fine`: it was checked and is right."
    )
    text: str = Field(description="What was found, in words.")
    remedy: str = Field(description="What to do about it; empty where nothing is to be done.")


class ClientReport(_Part):
    """What one kind of client gets on a route."""

    client: str = Field(description="The kind of client, in words.")
    produce_version: int = Field(description="Newest Produce that it is offered; -1: none.")
    fetch_version: int = Field(description="Newest Fetch that it is offered; -1: none.")
    produce_hints: bool = Field(description="Whether it gets hints on Produce.")
    fetch_hints: bool = Field(description="Whether it gets hints on Fetch.")
    remark: str = Field(description="What else is to be known; may be empty.")
    produce_settles: bool = Field(
        default=False,
        description="Whether its Produce errors wait, without a hint, for settled Metadata, if it "
        "is idempotent or transactional.",
    )
    fetch_settles: bool = Field(default=False, description="The same of its Fetch errors.")


class RouteReport(_Part):
    """One route."""

    route: str = Field(description="The route's name.")
    listen: str = Field(description="HOST:PORT where the proxy listens.")
    upstream: str = Field(description="HOST:PORT of the broker's listener.")
    node: int | None = Field(description="The broker's node id; null where it is not proved.")
    cluster: str | None = Field(description="The cluster's id; null where it is not known.")
    findings: tuple[FindingReport, ...] = Field(description="What was found about the route.")
    clients: tuple[ClientReport, ...] = Field(
        description="What each kind of client gets; empty where the broker is not known."
    )


class CheckReport(_Part):
    """The answer of `leader-hints check --json`."""

    version: Literal[1] = Field(
        default=1,
        description="Of this form. Within a version keys and codes are added, never changed.",
    )
    mend: bool = Field(description="Whether there are problems: then the exit code is 1.")
    routes: tuple[RouteReport, ...] = Field(description="In the order of the settings.")
    machine: tuple[FindingReport, ...] = Field(description="What was found about this machine.")


def make_report(routes: Sequence[RouteFacts], findings: Sequence[Finding]) -> CheckReport:
    """Put facts and findings together."""
    return CheckReport(
        mend=must_fix(findings),
        routes=tuple(_route(route, findings) for route in routes),
        machine=_of(findings, None),
    )


def _route(route: RouteFacts, findings: Sequence[Finding]) -> RouteReport:
    clients: tuple[ClientSupport, ...] = ()
    if route.known:
        clients = support_of_kinds(
            route.met.maxima,
            route.mode,
            route.clients,
            settle=route.settle,
            topic_ids=route.topics.have_names,
            synthetic=route.topics.synthesized
            and not route.topics.have_ids
            and not route.topics.hidden,
        )
    return RouteReport(
        route=route.name,
        listen=route.listen,
        upstream=route.upstream,
        node=route.node,
        cluster=route.cluster or None,
        findings=_of(findings, route.name),
        clients=tuple(
            ClientReport(
                client=support.client,
                produce_version=support.produce,
                fetch_version=support.fetch,
                produce_hints=support.produce_hints,
                fetch_hints=support.fetch_hints,
                remark=support.remark,
                produce_settles=support.produce_settles,
                fetch_settles=support.fetch_settles,
            )
            for support in clients
        ),
    )


def _of(findings: Sequence[Finding], route: str | None) -> tuple[FindingReport, ...]:
    return tuple(
        FindingReport(
            code=finding.code,
            severity=finding.severity,
            text=finding.text,
            remedy=finding.remedy,
        )
        for finding in findings
        if finding.route == route
    )


def to_json(report: CheckReport) -> str:
    """The report as JSON in ASCII. The encoder escapes all control characters but DEL."""
    return json.dumps(report.model_dump(mode="json"), indent=2).replace("\x7f", "\\u007f")


def lines(report: CheckReport) -> Iterator[str]:
    """Yield the report in words. What came from the network is escaped."""
    for route in report.routes:
        yield escape(f"route {route.listen} = {route.upstream}")
        yield from _finding_lines(route.findings)
        yield ""
    yield from _tables(report.routes)
    yield "this machine"
    yield from _finding_lines(report.machine)
    yield ""
    found = [f for part in (*(r.findings for r in report.routes), report.machine) for f in part]
    count = sum(finding.severity is Severity.PROBLEM for finding in found)
    yield f"Problems found: {count}" if count else "No problems found."


def _finding_lines(findings: Sequence[FindingReport]) -> Iterator[str]:
    for severity, heading in _HEADINGS.items():
        some = [finding for finding in findings if finding.severity is severity]
        if some:
            yield f"  {heading}"
        for finding in some:
            yield f"    {finding.code}: {escape(finding.text)}"
            if finding.remedy:
                yield f"      -> {escape(finding.remedy)}"


def _tables(routes: Sequence[RouteReport]) -> Iterator[str]:
    """What clients get: once for all routes on which that is the same."""
    tables: dict[tuple[ClientReport, ...], list[str]] = {}
    for route in routes:
        if route.clients:
            tables.setdefault(route.clients, []).append(route.listen)
    for clients, listens in tables.items():
        heading = "what clients get"
        if len(listens) < len(routes):
            yield escape(f"{heading} on {', '.join(listens)}")
            heading = ""
        yield from _client_lines(heading, clients)
        yield ""


def _client_lines(heading: str, clients: Sequence[ClientReport]) -> Iterator[str]:
    yield f"{heading:28}{'Produce':12}Fetch"
    for client in clients:
        produce = _version(client.produce_version, client.produce_hints, client.produce_settles)
        fetch = _version(client.fetch_version, client.fetch_hints, client.fetch_settles)
        yield f"  {client.client:26}{produce:12}{fetch:12}{client.remark}".rstrip()


def _version(version: int, hints: bool, settles: bool) -> str:
    return f"{version}{' hints' * hints}{' settled' * settles}"
