"""Which tests run when: a table. ``pytest --tier NAME`` runs one tier and those below it.

A test of a folder that is not named here is of the last tier, so nothing is ever left out of all
of them. What is real and slow is in the last one; each product rule has a test in an earlier one.
"""

from enum import IntEnum
from typing import Final

import pytest

from tests.real.names import KRAFT_36, ZK_24, ZK_36


class Tier(IntEnum):
    """``UNIT``: the pure layers, and Trio with fakes. ``TEST``: the mock cluster, the command, the
    documentation, and a slice of real brokers, besides. ``ALL``: everything but the deployment.
    """

    UNIT = 1
    TEST = 2
    ALL = 3


#: By the beginning of a test's path; the longest one counts.
_TIERS: Final = {
    "tests/apis/": Tier.UNIT,
    "tests/app/": Tier.UNIT,
    "tests/bench/": Tier.TEST,
    "tests/check/": Tier.UNIT,
    "tests/cli/": Tier.TEST,
    "tests/conformance/": Tier.UNIT,
    "tests/core/": Tier.UNIT,
    # To count the lines of each step, or to trace memory, takes ten times as long as the step.
    "tests/core/link/test_link_hostile.py": Tier.TEST,
    "tests/core/link/test_link_large_responses.py": Tier.TEST,
    "tests/core/link/test_link_steps.py": Tier.TEST,
    "tests/demo/": Tier.TEST,
    "tests/docs/": Tier.TEST,
    "tests/faults/": Tier.UNIT,
    "tests/fuzz/": Tier.TEST,
    "tests/harness/": Tier.TEST,
    "tests/hosting/": Tier.TEST,
    "tests/local/": Tier.UNIT,
    "tests/matrix/": Tier.TEST,
    "tests/mock/": Tier.TEST,
    "tests/mutants/": Tier.TEST,
    "tests/net/": Tier.UNIT,
    # It has a real KDC.
    "tests/net/brokers/test_kerberos.py": Tier.TEST,
    "tests/observe/": Tier.UNIT,
    "tests/pipeline/journal/": Tier.TEST,
    "tests/pipeline/kip951/": Tier.TEST,
    "tests/pipeline/report/": Tier.TEST,
    "tests/pipeline/simulation/": Tier.TEST,
    "tests/pipeline/tables/": Tier.TEST,
    "tests/recordings/": Tier.TEST,
    "tests/runs/": Tier.TEST,
    "tests/settings/": Tier.UNIT,
    "tests/test_": Tier.UNIT,
    "tests/wire/": Tier.UNIT,
    "tests/world/": Tier.TEST,
}
#: Of real brokers: what a hint is for, on the oldest brokers and on both kinds of the newest.
_REAL: Final = ("tests/real/test_hint_used.py", "tests/real/test_there_and_back.py")
_CLUSTERS: Final = frozenset({ZK_24, ZK_36, KRAFT_36})


def tier(nodeid: str, cluster: str) -> Tier:
    """Return the lowest tier that runs a test. ``cluster``: of real brokers, "" for none."""
    if nodeid.startswith(_REAL):
        return Tier.TEST if cluster in _CLUSTERS else Tier.ALL
    known = [prefix for prefix in _TIERS if nodeid.startswith(prefix)]
    return _TIERS[max(known, key=len)] if known else Tier.ALL


def may_have(folder: str, asked: Tier) -> bool:
    """Return whether ``folder``, such as tests/core/, may have tests of a tier or a lower one.

    To read the others takes longer than many tests do.
    """
    if asked is Tier.ALL:
        return True
    known = [prefix for prefix, lowest in _TIERS.items() if lowest <= asked]
    if asked >= Tier.TEST:
        known += _REAL
    return any(of.startswith(folder) or folder.startswith(of) for of in known)


def tier_of(item: pytest.Item) -> Tier:
    """Return the lowest tier that runs a test."""
    parameters = getattr(item, "callspec", None)
    return tier(item.nodeid, str(parameters.params.get("cluster", "")) if parameters else "")
