"""Rules of containers that are gone do not lead later ones astray."""

import sys
from collections.abc import Iterator

import pytest

from tests.deploy.port_rules import forget_dead
from tests.deploy.tools import need, run
from tests.harness import processes

_NAT = ("iptables", "--wait", "-t", "nat")
_NETWORK = "leader-hints-test_rules"
_BASE = "CNI-LEADER-HINTS-T"
_DEAD, _LIVE = "dead-leader-hints-container", "live-leader-hints-container"


@pytest.fixture
def rules(alone: None) -> Iterator[None]:
    """A chain with the rules of two containers, which no packet passes."""
    need("iptables", root=True)
    forget_dead(_NETWORK)
    run(*_NAT, "-N", _BASE, check=False)
    try:
        for container in (_DEAD, _LIVE):
            own = f"CNI-{container[:4]}-LEADER-HINTS"
            comment = ("-m", "comment", "--comment", f'name: "{_NETWORK}" id: "{container}"')
            run(*_NAT, "-N", own)
            run(*_NAT, "-A", own, "-d", "192.0.2.9/32", *comment, "-j", "ACCEPT")
            run(*_NAT, "-A", _BASE, "-s", "192.0.2.9/32", *comment, "-j", own)
        yield
    finally:
        forget_dead(_NETWORK)
        run(*_NAT, "-X", _BASE)


def test_rules_go_with_their_container(rules: None) -> None:
    sleeper = processes.start([sys.executable, "-c", "input()", _LIVE], talk=True)
    try:
        forget_dead(_NETWORK)
        left = run(*_NAT, "-S").stdout
        assert _DEAD not in left
        assert f"CNI-{_DEAD[:4]}-" not in left
        assert left.count(_LIVE) == 2
    finally:
        processes.end(sleeper)
    forget_dead(_NETWORK)
    assert _NETWORK not in run(*_NAT, "-S").stdout
