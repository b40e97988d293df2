import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata_brokers import VERSIONS, address_splices
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import at_once
from tests.apis import readdressing
from tests.apis.messages import entities, response_type


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=12)
@given(data=st.data(), seed=st.integers(0, 99))
def test_only_addresses_change(version: int, data: st.DataObject, seed: int) -> None:
    answer = data.draw(entities(response_type(ApiKey.METADATA, version)))
    readdressing.check(address_splices, answer, seed)


@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_any_bytes_give_splices_or_a_wire_error(raw: bytes, version: int) -> None:
    with contextlib.suppress(WireError):
        at_once(address_splices(memoryview(bytes(8) + raw), version, readdressing.readdress))
