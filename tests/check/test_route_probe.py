"""How many are asked at the same time; what is found is tested on real brokers."""

import pytest
import trio
import trio.testing

from leader_hints.check import endpoint_probe, route_probe
from leader_hints.check.facts import EndpointKind, ProbeResult
from leader_hints.settings.settings import Settings


def test_not_all_of_many_routes_are_asked_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds the proxy's own CPU was too slow for its bounds: good brokers were reported."""
    now, most = 0, 0

    async def meet(*_: object) -> ProbeResult:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await trio.testing.wait_all_tasks_blocked()
        now -= 1
        return ProbeResult(kind=EndpointKind.UNREACHABLE)

    monkeypatch.setattr(endpoint_probe, "meet", meet)
    routes = [
        {"listen": "127.0.0.1:0", "upstream": f"127.0.0.1:{port}", "name": f"r{port}"}
        for port in range(1, 121)
    ]
    found, _ = route_probe.examine(Settings.model_validate({"routes": routes}))
    assert len(found) == 120
    assert most == 50
