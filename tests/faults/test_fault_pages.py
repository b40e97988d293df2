"""Requests for faults that no fault has."""

import pytest

from leader_hints.faults.fault import Faults
from leader_hints.faults.fault_pages import FaultPages
from leader_hints.net.admin.admin import Request


@pytest.mark.parametrize("number", ["0", "7", "-1", "x", "9" * 18, "9" * 5000, "\xb2"])
def test_a_number_of_no_fault_is_not_found(number: str) -> None:
    pages = FaultPages(Faults(), lambda fault: 1)
    assert pages.answer(Request("DELETE", f"/faults/{number}", {}, b"")).status == 404
