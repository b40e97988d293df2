"""Faults: the reasons for which the demo fails, each as a sentence. Pure."""

from collections.abc import Iterator, Sequence

from demo.report import COUNTED_APIS, RoundReport
from leader_hints.mock.cluster import BEFORE_HINTS


def find_faults(reports: Sequence[RoundReport]) -> list[str]:
    """All that is wrong in the rounds; empty if the demo passes."""
    faults: list[str] = []
    for number, report in enumerate(reports, start=1):
        mode = "on" if report.hints_on else "off"
        found = (*_past_the_proxy(report), *_hints(report), *_records(report))
        faults.extend(f"Round {number} (hints {mode}): {fault}" for fault in found)
    return faults


def _past_the_proxy(report: RoundReport) -> Iterator[str]:
    strays = sorted(report.met_addresses - report.proxy_addresses)
    if strays:
        yield f"traffic went past the proxy: a client connected to {', '.join(strays)}."
    if not report.met_addresses:
        yield "the clients report no connection at all."
    if report.client_bytes > report.proxy_bytes:
        yield (
            f"traffic went past the proxy: the clients sent {report.client_bytes} bytes, "
            f"the proxy got {report.proxy_bytes}."
        )
    for api in COUNTED_APIS:
        reached, passed = report.mock_requests.get(api, 0), report.proxy_requests.get(api, 0)
        if report.hints_on and reached > passed:
            yield (
                f"traffic went past the proxy: {reached} {api} requests reached the brokers, "
                f"{passed} passed the proxy."
            )


def _hints(report: RoundReport) -> Iterator[str]:
    for node, offered in sorted(report.offered.items()):
        for api, cap in BEFORE_HINTS.items():
            if offered.get(api) != cap:
                yield (
                    f"mock broker {node} offers {api} up to {offered.get(api)}, not {cap}, "
                    "so a hint could come from it."
                )
    given = len(report.hint_lines)
    if report.hints_on and not given:
        yield "no hint was given."
    if not report.hints_on and (given or report.hints_counted):
        yield f"{max(given, report.hints_counted)} hints were given, although hints are off."
    if given != report.hints_counted:
        yield f"the proxy's log has {given} hints, its metrics have {report.hints_counted}."
    for line in report.wrong_hints:
        yield (
            f"a wrong hint: partition {line['partition']} never had leader {line['leader']} "
            f"at epoch {line['epoch']}."
        )


def _records(report: RoundReport) -> Iterator[str]:
    if not report.acknowledged:
        yield "no record was acknowledged."
    if report.lost:
        yield f"{report.lost} records were acknowledged but never read."
    if report.doubled:
        yield f"{report.doubled} records were read more than once."
    if report.disordered:
        yield f"{report.disordered} records came out of order."
    for error in report.client_errors:
        yield f"a client reported an error: {error}."
    for move in report.moves:
        for api, recovery in (("Produce", move.produce_ms), ("Fetch", move.fetch_ms)):
            if recovery is None:
                yield (
                    f"{api} of partition {move.partition} did not recover from the move "
                    f"to node {move.leader}."
                )
