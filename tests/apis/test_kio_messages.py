"""Messages that cannot be written."""

import dataclasses

import pytest
from kio.schema.metadata.v9.response import MetadataResponse

from leader_hints.apis.kio_messages import write_body, write_response
from leader_hints.wire.errors import WireError
from tests.apis.messages import plain


def test_what_has_no_place_in_a_message_is_reported_as_what_bytes_can_be_wrong_with() -> None:
    message = plain(MetadataResponse)
    assert write_body(message)
    odd = dataclasses.replace(message, controller_id=1 << 40)
    for write in (write_body, lambda it: write_response(1, it)):
        with pytest.raises(WireError, match="writing 3 v9"):
            write(odd)
