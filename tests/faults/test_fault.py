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


def test_so_is_one_of_topics_in_messages_of_which_no_topics_are_read() -> None:
    values = {"action": "delay", "apis": ["Metadata"], "delay_ms": 1}
    Fault.model_validate(values)
    Fault.model_validate({**values, "topics": ["t"], "apis": ["Fetch", "Metadata"]})
    Fault.model_validate({"action": "stale_metadata", "apis": ["Metadata"], "topics": ["t"]})
    for chosen in ({"topics": ["t"]}, {"partitions": [0]}):
        with pytest.raises(ValidationError, match="only chosen in Fetch and Produce"):
            Fault.model_validate(values | chosen)
