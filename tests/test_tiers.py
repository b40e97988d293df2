"""Every test is in a tier, and each tier has what it is for."""

from pathlib import Path

import pytest

from tests.real.names import KRAFT_36, ZK_24, ZK_28
from tests.tiers import Tier, may_have, tier


@pytest.mark.parametrize(
    ("nodeid", "cluster", "expected"),
    [
        ("tests/core/link/test_link.py::test_x", "", Tier.UNIT),
        ("tests/core/link/test_link_steps.py::test_x", "", Tier.TEST),
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


@pytest.mark.parametrize(
    ("folder", "lowest"),
    [
        ("tests/", Tier.UNIT),
        ("tests/core/", Tier.UNIT),
        ("tests/core/link/", Tier.UNIT),
        ("tests/mock/", Tier.TEST),
        ("tests/real/", Tier.TEST),
        ("tests/pipeline/", Tier.TEST),
        ("tests/pipeline/journal/", Tier.TEST),
        ("tests/pipeline/generator/", Tier.ALL),
        ("tests/packaging/", Tier.ALL),
        ("tests/a_new_folder/", Tier.ALL),
    ],
)
def test_folders_are_read_for_the_tiers_that_they_have(folder: str, lowest: Tier) -> None:
    assert [asked for asked in Tier if may_have(folder, asked)] == [*range(lowest, Tier.ALL + 1)]


def test_a_folder_that_is_read_for_no_tier_has_no_test_of_it(pytestconfig: pytest.Config) -> None:
    files = [
        file.relative_to(pytestconfig.rootpath).as_posix()
        for file in (pytestconfig.rootpath / "tests").rglob("test_*.py")
    ]
    clusters = ("", ZK_24)
    for asked in (Tier.UNIT, Tier.TEST):
        left_out = [file for file in files if not may_have(f"{Path(file).parent}/", asked)]
        assert left_out
        assert not [file for file in left_out for of in clusters if tier(file, of) <= asked]
