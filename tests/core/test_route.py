import pytest

from proxy.core.mode import Mode
from proxy.core.plan import PASS, READ_ONLY, Plan, plan_for
from proxy.core.route import Route
from tests.core.samples import BROKER_3_6

_RAISED = plan_for(BROKER_3_6)
_NATIVE = Plan(reads=False, native=True)


@pytest.mark.parametrize(
    ("mode", "known", "link"),
    [
        (Mode.ON, _RAISED, _RAISED),
        (Mode.ON, _NATIVE, _NATIVE),
        (Mode.ON, PASS, PASS),
        (Mode.ON, None, READ_ONLY),
        (Mode.OBSERVE, _RAISED, READ_ONLY),
        (Mode.OBSERVE, _NATIVE, _NATIVE),
        (Mode.OBSERVE, None, READ_ONLY),
        (Mode.OFF, _RAISED, PASS),
        (Mode.OFF, None, PASS),
    ],
)
def test_what_a_new_link_does_about_versions(mode: Mode, known: Plan | None, link: Plan) -> None:
    assert Route("r", mode, plan=known).link_plan == link
