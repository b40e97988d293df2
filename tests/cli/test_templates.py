"""Templates: what `${NAME}` becomes, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.cli.templates import expand

VARIABLES = {"NODE_IP": "10.0.0.7", "NODE_IP6": "fd00::7", "PORT": "9092", "EMPTY": ""}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${NODE_IP}:9092", "10.0.0.7:9092"),
        ("${NODE_IP}:${PORT}", "10.0.0.7:9092"),
        ("broker-${PORT}.${NODE_IP}", "broker-9092.10.0.0.7"),
        ("${NODE_IP6}:9092", "[fd00::7]:9092"),
        ("${NODE_IP6}:${PORT}", "[fd00::7]:9092"),
        ("[${NODE_IP6}]:9092", "[fd00::7]:9092"),
        ("on-${NODE_IP6}", "on-fd00::7"),
        ("plain:9092", "plain:9092"),
    ],
)
def test_a_value_stands_in_its_place(template: str, text: str) -> None:
    assert expand(template, VARIABLES) == text


@pytest.mark.parametrize("name", ["ABSENT", "EMPTY"])
def test_a_variable_without_a_value_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"environment variable {name} is not set, or empty"):
        expand(f"${{{name}}}:9092", VARIABLES)


@pytest.mark.parametrize("template", ["$NODE_IP:9092", "${}:1", "${NODE-IP}:1", "${1}", "a$", "$$"])
def test_a_dollar_that_begins_no_name_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=re.escape("such as ${NODE_IP}")):
        expand(template, VARIABLES)


@given(st.text(st.characters(exclude_characters="$")), st.text(min_size=1))
def test_a_value_is_never_read_as_a_template(text: str, value: str) -> None:
    assert expand(text, {}) == text
    assert expand(f"x{text}${{A}}", {"A": value}) == f"x{text}{value}"
