from typing import Any

import pytest

from demo.faults import find_faults
from tests.demo.reports import good_move, good_round, hint_line


def test_good_rounds_have_no_fault() -> None:
    assert find_faults([good_round(False), good_round(True)]) == []


ON_FAULTS = [
    ({"met_addresses": frozenset({"127.0.0.1:20001", "127.0.0.1:9"})}, "to 127.0.0.1:9."),
    ({"met_addresses": frozenset()}, "no connection at all"),
    ({"client_bytes": 5001}, "the clients sent 5001 bytes, the proxy got 5000"),
    ({"proxy_requests": {"Produce": 40, "Fetch": 49}}, "50 Fetch requests reached the brokers"),
    ({"proxy_requests": {"Produce": 39, "Fetch": 50}}, "40 Produce requests reached the brokers"),
    ({"offered": {1: {"Produce": 10, "Fetch": 15}}}, "offers Produce up to 10, not 9"),
    ({"offered": {1: {"Produce": 9, "Fetch": 16}}}, "offers Fetch up to 16, not 15"),
    ({"offered": {1: {"Produce": 9}}}, "offers Fetch up to None"),
    ({"hint_lines": (), "hints_counted": 0}, "no hint was given"),
    ({"hints_counted": 2}, "log has 1 hints, its metrics have 2"),
    ({"hint_lines": (hint_line(leader=3),)}, "never had leader 3 at epoch 2"),
    ({"hint_lines": (hint_line(epoch=3),)}, "never had leader 2 at epoch 3"),
    ({"acknowledged": 0}, "no record was acknowledged"),
    ({"lost": 4}, "4 records were acknowledged but never read"),
    ({"doubled": 5}, "5 records were read more than once"),
    ({"disordered": 6}, "6 records came out of order"),
    ({"client_errors": ("delivery failed: too late",)}, "delivery failed: too late"),
    ({"moves": (good_move(fetch_ms=None),)}, "Fetch of partition 0 did not recover"),
    ({"moves": (good_move(produce_ms=None),)}, "Produce of partition 0 did not recover"),
]


@pytest.mark.parametrize(("change", "words"), ON_FAULTS)
def test_each_thing_that_goes_wrong_is_named(change: dict[str, Any], words: str) -> None:
    (fault,) = find_faults([good_round(False), good_round(True, **change)])
    assert fault.startswith("Round 2 (hints on): ")
    assert words in fault


@pytest.mark.parametrize("change", [{"hints_counted": 1}, {"hint_lines": (hint_line(),)}])
def test_hints_in_a_round_without_are_a_fault(change: dict[str, Any]) -> None:
    faults = find_faults([good_round(False, **change)])
    assert "Round 1 (hints off): 1 hints were given, although hints are off." in faults


def test_requests_are_not_compared_where_the_proxy_reads_nothing() -> None:
    assert find_faults([good_round(False, proxy_requests={"Produce": 0, "Fetch": 0})]) == []
