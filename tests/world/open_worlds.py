"""Worlds that break a rule, by a defect of the product, the model or the rule that is not found.

Each is to be explained and fixed, and then leaves this list. What changes the draws of
worlds changes the list too. ``python -m tests.world --seeds 2000 --known`` holds it: a world that
is not here must break no rule, and one that is must break its own.
"""

from collections.abc import Mapping
from typing import Final

#: By seed the first rule that breaks.
OPEN: Final[Mapping[int, str]] = {}
