"""How many clients a number of descriptors is enough for: one count for `check` and for `run`."""

import pytest

from leader_hints.core.descriptors import connections_within, descriptors_for


@pytest.mark.parametrize("connections", [1, 100, 30_000])
def test_what_is_needed_is_just_enough(connections: int) -> None:
    needed = descriptors_for(connections)

    assert connections_within(needed) == connections
    assert connections_within(needed - 1) == max(connections - 1, 1)


def test_one_client_is_always_served() -> None:
    assert connections_within(3) == 1
