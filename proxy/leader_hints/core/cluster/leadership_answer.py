"""What a broker's answer to ListOffsets means for its leadership.

The proxy asks for an offset of a partition at an epoch. A broker compares epochs before leaders
(KIP-320), so its error means the following for the broker and for the epoch asked:

| error | the broker asked | the epoch asked |
|---|---|---|
| none | leads at it | is the present one |
| NOT_LEADER_OR_FOLLOWER | never leads at it | is the present one: another broker leads |
| UNKNOWN_LEADER_EPOCH | does not lead at it yet | the broker has not learnt of it |
| FENCED_LEADER_EPOCH | may lead at a later one | is over |
| UNKNOWN_TOPIC_OR_PARTITION | does not lead yet, or it is deleted | is nothing that it knows of |

Any other error means nothing.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from leader_hints.apis.error_codes import ErrorCode


class LeadershipAnswer(Enum):
    """What a broker says of its leadership of a partition at the epoch asked."""

    LEADS = "it leads"
    NEVER_LEADS = "another broker leads at this epoch, now and for ever"
    NOT_YET = "it does not know this epoch yet"
    EPOCH_OVER = "this epoch is over"
    UNAWARE = "it does not know the topic yet"

    @property
    def denies(self) -> bool:
        """Whether the broker does not lead at the epoch now, and the epoch is not over for it."""
        return self in (LeadershipAnswer.NEVER_LEADS, LeadershipAnswer.NOT_YET)


_ANSWERS: Mapping[int, LeadershipAnswer] = MappingProxyType(
    {
        ErrorCode.NONE: LeadershipAnswer.LEADS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: LeadershipAnswer.NEVER_LEADS,
        ErrorCode.UNKNOWN_LEADER_EPOCH: LeadershipAnswer.NOT_YET,
        ErrorCode.FENCED_LEADER_EPOCH: LeadershipAnswer.EPOCH_OVER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: LeadershipAnswer.UNAWARE,
    }
)


def leadership_answer(error: int | None) -> LeadershipAnswer | None:
    """Return what an error says, ``None`` where it says nothing, or nothing was answered."""
    return None if error is None else _ANSWERS.get(error)
