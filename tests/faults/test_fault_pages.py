"""Requests for faults that no fault has."""

import pytest

from leader_hints.faults.fault import Faults
from leader_hints.faults.fault_pages import FaultPages
from leader_hints.net.admin.admin import Request


@pytest.mark.parametrize("number", ["0", "7", "-1", "x", "9" * 18, "9" * 5000, "\xb2"])
async def test_a_number_of_no_fault_is_not_found(number: str) -> None:
    pages = FaultPages(Faults(), lambda fault: 1, list)
    reply = await pages.answer(Request("DELETE", f"/faults/{number}", {}, b""))
    assert reply.status == 404


async def test_a_fault_of_a_route_that_is_not_there_is_refused() -> None:
    pages = FaultPages(Faults(), lambda fault: 1, lambda: ["broker-2", "broker-1"])
    body = b'{"action": "drop", "routes": ["broker-1", "broker-9"]}'
    refused = await pages.answer(Request("POST", "/faults", {}, body))
    assert refused.status == 400
    assert b"no such route: broker-9; there are: broker-1, broker-2" in refused.body
    known = await pages.answer(Request("POST", "/faults", {}, body.replace(b', "broker-9"', b"")))
    assert known.status == 201
