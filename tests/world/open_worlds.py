"""Worlds that break a rule, by a defect of the product, the model or the rule that is not found.

Each is to be explained and fixed, and then leaves this list. What changes the draws of
worlds changes the list too. ``python -m tests.world --seeds 2000 --known`` holds it: a world that
is not here must break no rule, and one that is must break its own.
"""

from collections.abc import Mapping
from typing import Final

#: By seed the first rule that breaks.
#:
#: 503096: two consumers fetch from two brokers in step, so one connection is always idle when they
#: want Metadata, and that leads to a broker that lags for three seconds. Without a proxy an error
#: has them back off, and they are out of step from then on: luck, which the rule does not know of.
OPEN: Final[Mapping[int, str]] = {503096: "clients_make_progress"}
