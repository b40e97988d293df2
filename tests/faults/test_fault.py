"""What can be asked for as a fault."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.faults.fault import Fault


@pytest.mark.parametrize(
    "values",
    [{"action": "error", "apis": ["Metadata"]}, {"action": "stale_metadata", "apis": ["Fetch"]}],
)
def test_a_fault_that_could_never_be_done_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is only done to"):
        Fault.model_validate(values)
