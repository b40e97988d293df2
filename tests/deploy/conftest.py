"""What the tests of this folder share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.containers import Containers, package_index
from tests.deploy.tools import need
from tests.harness.locks import exclusively

_TEST_TIMEOUT_S = 900  # The first test of the image makes its base and the image.
#: Bridges, namespaces and the ports of the Compose file are the machine's, whatever the checkout.
_LOCK = Path(tempfile.gettempdir()) / "leader-hints-test-deploy.lock"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time for set-up."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def alone() -> Iterator[None]:
    """No other run of these tests on this machine; one that comes later waits."""
    with exclusively(_LOCK):
        yield


@pytest.fixture(scope="session")
def index_address() -> Iterator[str]:
    """A package index, by an address with a password in it."""
    with package_index() as port:
        yield f"http://builder:pass-for-the-index@127.0.0.1:{port}/simple"


@pytest.fixture(scope="session")
def containers(alone: None, index_address: str) -> Containers:
    """A storage with the image in it."""
    need("buildah", "podman", "runc", "debootstrap", root=True)
    made = Containers()
    made.clear()
    made.make_base()
    made.build(index_address)
    return made
