"""Client software as labels, without a bound that a client could break.

Tested in ``tests/observe/test_metrics.py``.
"""

import re
from collections.abc import Collection

from leader_hints.core.versions.client_capabilities import BUILT_IN

#: What a broker takes (KIP-511), and no longer than any that is honest.
_FORM = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,62}[A-Za-z0-9])?", re.ASCII)
#: Most versions as labels of each known software, and most pairs of unknown software in all.
_MOST_VERSIONS = 20
_MOST_UNKNOWN = 50

OTHER = "other"


class ClientNames:
    """Names of software with their versions; what is beyond the bounds is called "other".

    ``known``: names of software that has room of its own, so that no client can crowd it out.
    """

    def __init__(self, known: Collection[str] = BUILT_IN.names) -> None:
        self._known = known
        self._taken: dict[str, set[tuple[str, str]]] = {}

    def label(self, software: str, version: str) -> tuple[str, str]:
        """Return name and version as they are counted."""
        known = software in self._known
        if not (known or _FORM.fullmatch(software)):
            return OTHER, OTHER
        pair = software, version if _FORM.fullmatch(version) else OTHER
        taken = self._taken.setdefault(software if known else "", set())
        if pair not in taken:
            if len(taken) >= (_MOST_VERSIONS if known else _MOST_UNKNOWN):
                return (software if known else OTHER), OTHER
            taken.add(pair)
        return pair
