from kio.schema.errors import ErrorCode as Kio

from leader_hints.apis.error_codes import HINTABLE, ErrorCode


def test_codes_are_kafkas() -> None:
    for code in ErrorCode:
        assert Kio(code.value).name == code.name.lower()


def test_only_the_errors_of_the_kip_are_hinted() -> None:
    assert {Kio(code).name for code in HINTABLE} == {
        "not_leader_or_follower",
        "fenced_leader_epoch",
    }
