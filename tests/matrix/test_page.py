"""The page has a cell for every client and broker, and says what was found."""

from tests.matrix import page
from tests.matrix.brokers import BROKERS
from tests.matrix.features import Feature
from tests.matrix.roster import CLIENTS, is_run, newest
from tests.matrix.samples import BROKER, CLIENT, found


def test_compatibility_page_has_every_cell() -> None:
    """Run ``make test-matrix`` where this fails."""
    written = page.overview_cells(page.FILE.read_text())
    wanted = {(page.title(kind), client) for kind in BROKERS.values() for client in CLIENTS}
    assert written.keys() == wanted
    lacking = [names for names, text in written.items() if text in ("", page.NOT_RUN)]
    assert not lacking


def test_cells_that_never_ran_are_reported() -> None:
    written = page.overview_cells(page.render({}, {}))
    left_out = {
        (page.title(kind), client)
        for name, kind in BROKERS.items()
        for client in CLIENTS
        if not is_run(name, client)
    }
    assert {text for where, text in written.items() if where not in left_out} == {page.NOT_RUN}
    assert {written[where] for where in left_out} == {"-"}


def test_a_cell_tells_what_was_found() -> None:
    text = page.render({(BROKER, CLIENT): found()}, {})
    where = (page.title(BROKERS[BROKER]), CLIENT)
    assert page.overview_cells(text)[where] == f"ok, {len(Feature)} of {len(Feature)}"
    assert "Produce 10 as 9 |" in text
    assert "given 7<br>budget 2<br>waited: budget 1, settled 1<br>used: produce" in text
    assert "## Failures" not in text


def test_a_failure_stands_in_the_page() -> None:
    text = page.render({(BROKER, CLIENT): found(GROUP="lost `5`\nrecords")}, {})
    where = (page.title(BROKERS[BROKER]), CLIENT)
    assert page.overview_cells(text)[where].startswith("**failed**")
    assert f"**failed**: {where[0]}" in text
    assert f"{Feature.GROUP}: `lost '5' records`" in text


def test_what_a_client_lacks_is_reported_with_its_reason() -> None:
    text = page.render({}, {})
    for client in CLIENTS.values():
        for feature, reason in client.lacks.items():
            assert f"- {client.name}, {feature}: {reason}." in text


def test_the_newest_of_a_family_comes_last() -> None:
    assert newest("java").version == "4.1.1"
