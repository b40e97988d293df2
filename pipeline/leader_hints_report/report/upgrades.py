"""Upgrades: from which version on a client's software uses hints, by the proxy's own table.

A copy of it would age. What the setting ``clients`` of a sidecar adds to it is not known here.

Tested in ``tests/pipeline/report/test_upgrades.py``.
"""

from typing import Final

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.versions import client_capabilities
from leader_hints.core.versions.client_capabilities import BUILT_IN, HintForm

#: Newer than any version of the table.
_NEWEST: Final = "999"
#: What sidecars report of clients to which they offer their broker's own versions.
_NO_HINTS: Final = ("none", "unknown")
#: Software that uses hints on Fetch, and in no version on Produce.
ON_FETCH_ALONE: Final = tuple(
    name
    for name in sorted(BUILT_IN.names)
    if HintForm.PRODUCE not in BUILT_IN.forms(ClientSoftware(name, _NEWEST))
)


def upgrade_to(software: str, version: str) -> str:
    """The first version of a client's software that uses hints; empty where this one does, or none
    is known to."""
    return client_capabilities.upgrade_to(ClientSoftware(software, version))


def raised(uses: str) -> str:
    """Whether sidecars with hints on raise versions for a client: `yes`, `no`, or `in part`; empty
    where that is not known.

    ``uses``: what they report that it uses, with semicolons between what differs.
    """
    if not uses:
        return ""
    offered = [of not in _NO_HINTS for of in uses.split("; ")]
    return "yes" if all(offered) else "in part" if any(offered) else "no"


def uses_hints(software: str, version: str) -> bool:
    """Whether a client's software is known to use hints in this version."""
    return bool(BUILT_IN.forms(ClientSoftware(software, version)))
