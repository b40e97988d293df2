"""What a link's client has said of itself."""

import pytest

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.link.client import LONGEST_TEXT, LinkClient
from leader_hints.core.versions.client_capabilities import KIP_951, NO_HINTS, HintForm
from tests.core.samples import request


def _frame(client_id: str | None) -> memoryview:
    return memoryview(request(3, 12, 1, client_id))


def test_before_it_says_anything_it_may_have_been_offered_hints_on_another_link() -> None:
    client = LinkClient()
    assert (client.id, client.software, client.hint_forms) == (None, "", KIP_951)
    assert not client.is_proxy


@pytest.mark.parametrize(("sent", "known"), [("orders", "orders"), ("", ""), (None, "")])
def test_its_first_request_has_its_client_id(sent: str | None, known: str) -> None:
    client = LinkClient()
    client.meet(_frame(sent))
    assert client.id == known


def test_a_header_that_has_not_come_leaves_the_client_id_open() -> None:
    client = LinkClient()
    client.meet(_frame("orders")[:12])
    assert client.id is None
    client.meet(_frame("orders"))
    assert client.id == "orders"


def test_a_header_that_cannot_be_read_gives_no_client_id() -> None:
    client = LinkClient()
    frame = bytes(_frame("orders"))
    # More tagged fields than any message has.
    tags = frame.index(b"orders") + len(b"orders")
    client.meet(memoryview(frame[:tags] + b"\xff\xff\xff\x7f"))
    assert client.id == ""


def test_a_long_client_id_is_cut_and_still_seen_to_be_long() -> None:
    client = LinkClient()
    client.meet(_frame("x" * 1000))
    assert client.id == "x" * (LONGEST_TEXT + 1)


def test_it_is_known_again_by_its_host_and_client_id() -> None:
    client = LinkClient("10.0.0.7:4711")
    assert client.known_as == ("10.0.0.7", "")
    client.meet(_frame("x" * 1000))
    assert client.known_as == ("10.0.0.7", "x" * LONGEST_TEXT)


def test_the_software_that_it_names_says_which_hints_it_can_use() -> None:
    client = LinkClient()
    forms = client.introduce(ClientSoftware("apache-kafka-java", "3.9.0"))
    assert forms == client.hint_forms == KIP_951 | {HintForm.FETCH_WITHOUT_ENDPOINTS}
    assert client.software == "apache-kafka-java/3.9.0"
    assert not client.is_proxy


def test_software_that_is_not_known_can_use_none() -> None:
    client = LinkClient()
    assert client.introduce(ClientSoftware("sarama", "1.43")) is None
    assert client.hint_forms == NO_HINTS
    assert client.software == "sarama/1.43"


def test_long_names_and_versions_are_cut() -> None:
    client = LinkClient()
    client.introduce(ClientSoftware("n" * 1000, "v" * 1000))
    assert client.software == f"{'n' * LONGEST_TEXT}/{'v' * LONGEST_TEXT}"


def test_another_proxy_is_known_by_its_name() -> None:
    client = LinkClient()
    client.introduce(ClientSoftware("leader-hints", "0.1.0"))
    assert client.is_proxy


def test_one_that_asks_without_a_name_gets_no_hints_and_that_is_new_once() -> None:
    client = LinkClient()
    assert client.asked_without_name()
    assert client.hint_forms == NO_HINTS
    assert not client.asked_without_name()


def test_one_that_has_named_itself_stays_known() -> None:
    """A broker refused its newer request, so it asks again in the oldest version."""
    client = LinkClient()
    client.introduce(ClientSoftware("apache-kafka-java", "3.9.0"))
    assert not client.asked_without_name()
    assert HintForm.PRODUCE in client.hint_forms
