"""`leader-hints readiness` before a real broker of Kafka 4; tests.readiness tries many clients."""

from pathlib import Path

from tests.readiness.page import wrong
from tests.readiness.roster import CLIENTS
from tests.readiness.trial import at_new_brokers, at_old_brokers


def test_what_is_said_of_a_client_comes_true(tmp_path: Path) -> None:
    clients = [CLIENTS[name] for name in ("java-0.10.2.2", "java-2.1.1")]
    _, verdicts = at_old_brokers(clients, tmp_path)
    new = at_new_brokers(clients, tmp_path)

    assert verdicts == {"java-0.10.2.2": "refused", "java-2.1.1": "ready"}
    assert {name: outcome.served for name, outcome in new.items()} == {
        "java-0.10.2.2": False,
        "java-2.1.1": True,
    }
    assert not wrong(clients, verdicts, new)
