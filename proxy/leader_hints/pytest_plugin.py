"""Fixtures for those who test Kafka clients; docs/local.md has an example.

pytest loads this module wherever the package is installed, so it loads nothing itself: what it
needs is loaded when a fixture is first used.

Tested in ``tests/mock/test_pytest_plugin.py``.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from leader_hints.conformance.lab import Lab
    from leader_hints.mock.cluster import MockCluster

_BROKERS = 3


@pytest.fixture
def leader_hints_topics() -> Mapping[str, int]:
    """Topics and their numbers of partitions; override it to have others."""
    return {"test": 3}


@pytest.fixture
def leader_hints_cluster(leader_hints_topics: Mapping[str, int]) -> "Iterator[MockCluster]":
    """A mock cluster of three brokers that offer the versions of Kafka 3.6, and give no hints."""
    from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster

    with MockCluster(_BROKERS, leader_hints_topics, BEFORE_HINTS) as cluster:
        yield cluster


@pytest.fixture
def leader_hints(leader_hints_cluster: "MockCluster") -> "Iterator[Lab]":
    """The cluster behind a proxy that gives hints, injects faults and records messages.

    It is a :class:`leader_hints.conformance.lab.Lab`: ``bootstrap``, ``move_leader``, ``inject``,
    ``seen``.
    """
    from leader_hints.conformance.lab import Lab

    with Lab(leader_hints_cluster) as lab:
        yield lab
