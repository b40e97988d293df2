"""Every test is in a tier, and each tier has what it is for."""

import pytest

from tests.real.names import KRAFT_36, ZK_24, ZK_28
from tests.tiers import Tier, tier


@pytest.mark.parametrize(
    ("nodeid", "cluster", "expected"),
    [
        ("tests/core/link/test_link.py::test_x", "", Tier.UNIT),
        ("tests/app/test_process.py::test_x", "", Tier.UNIT),
        ("tests/mock/test_hints.py::test_x", "", Tier.TEST),
        ("tests/real/test_hint_used.py::test_x[2.4]", ZK_24, Tier.TEST),
        ("tests/real/test_there_and_back.py::test_x[3.6]", KRAFT_36, Tier.TEST),
        ("tests/real/test_hint_used.py::test_x[2.8]", ZK_28, Tier.ALL),
        ("tests/real/test_rollout.py::test_x", "", Tier.ALL),
        ("tests/pipeline/journal/test_events.py::test_x", "", Tier.TEST),
        ("tests/pipeline/test_streaming.py::test_x", "", Tier.ALL),
        ("tests/a_new_folder/test_x.py::test_x", "", Tier.ALL),
    ],
)
def test_each_test_has_a_tier(nodeid: str, cluster: str, expected: Tier) -> None:
    assert tier(nodeid, cluster) is expected
