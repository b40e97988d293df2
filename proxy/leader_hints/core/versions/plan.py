"""The version plan: which maxima are raised, and what goes to the broker instead.

A client uses a hint only in versions whose schema has the field. So ApiVersions is answered
with raised maxima, and a request of such a version is lowered to one that the broker takes.

Where topic ids are synthetic (:mod:`leader_hints.core.cluster.synthetic_ids`) clients name topics
by those, and brokers, which do not know them, are asked by name.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from leader_hints.apis import metadata
from leader_hints.apis.fetch_request import RACK_FROM
from leader_hints.apis.keys import ApiKey
from leader_hints.core.versions.client_capabilities import HintForm


class Row(NamedTuple):
    """A broker whose maximum for ``key`` is ``takes`` is offered as if it took ``offered``.

    ``form``: only to clients that can use hints in that form. ``topic_ids``: only where the cluster
    has topic ids and each can be named. Requests above ``takes`` go as that version.
    """

    key: ApiKey
    takes: int
    offered: int
    form: HintForm
    topic_ids: bool = False


#: The whole plan. Brokers, by release: Produce 8 and Fetch 11 2.4 to 2.6, Fetch 12 2.7 to 3.0,
#: Produce 9 from 2.8, Fetch 13 3.1 to 3.4, Fetch 15 3.5 and 3.6.
ROWS = (
    Row(ApiKey.PRODUCE, 9, 10, HintForm.PRODUCE),
    Row(ApiKey.PRODUCE, 8, 10, HintForm.PRODUCE),
    Row(ApiKey.FETCH, 15, 16, HintForm.FETCH),
    Row(ApiKey.FETCH, 14, 16, HintForm.FETCH),
    Row(ApiKey.FETCH, 13, 16, HintForm.FETCH),
    # Without topic ids clients stay at 12 of themselves, but librdkafka 2.5.0 to 2.5.3, which
    # sends zero ids.
    Row(ApiKey.FETCH, 12, 16, HintForm.FETCH, topic_ids=True),
    # CurrentLeader alone, as in the KIP's draft.
    Row(ApiKey.FETCH, 11, 12, HintForm.FETCH_WITHOUT_ENDPOINTS),
)
#: The whole plan where topic ids are synthetic: for clients that can use what Fetch 16 brings.
ROWS_SYNTHETIC = (
    *(row for row in ROWS if row.key is ApiKey.PRODUCE),
    Row(ApiKey.FETCH, 12, 16, HintForm.FETCH),
    Row(ApiKey.FETCH, 11, 16, HintForm.FETCH),
    *(Row(ApiKey.METADATA, takes, 12, HintForm.FETCH) for takes in (11, 10)),
    # Brokers without DescribeCluster (before 2.8), which says what a client may do to the cluster:
    # up to this version Metadata does.
    Row(ApiKey.METADATA, 9, metadata.CLUSTER_OPERATIONS_UNTIL, HintForm.FETCH),
)
#: The newest version in which a broker is asked by name.
_NEWEST_BY_NAME = 12
#: In this version of Fetch only leaders answer consumers.
_LEADERS_ALONE = RACK_FROM - 1
#: Brokers of 2.4 have no newer one, those of 2.5 do (KIP-559).
_JOIN_GROUP_OF_2_4 = 6
#: What of ROWS changes the version number alone: the bodies are the same (KIP-951).
RESTAMPED = frozenset({(ApiKey.PRODUCE, 9), (ApiKey.FETCH, 15)})
#: A broker that takes this version gives hints of its own.
_NATIVE_PRODUCE = 10
#: Only KRaft brokers take it.
_DESCRIBE_QUORUM = 55


@dataclass(frozen=True, slots=True)
class Plan:
    """What a link does about versions; fixed once its broker's versions are known.

    ``reads``: whether frames are looked at; where not, the link is a plain relay. ``synthetic``:
    topic ids are synthetic.
    ``native``: the broker gives hints of its own. ``kraft``: it takes part in a KRaft cluster.
    ``rows``: those of the plan that hold for the
    broker. ``sent``: version sent by (API key, version asked), where it is another one.
    ``recoded``: those of them whose requests need more than another version number.
    ``rackless``: version of Fetch sent for a client that names no rack, where that is another
    one. Brokers of 2.4 forget the leader epochs of a fetch session (KAFKA-9338), so an ex-leader
    does not notice that a consumer takes it for the leader, and serves it late as a follower.
    Up to v10 it answers NOT_LEADER_OR_FOLLOWER; all that v11 adds is for clients with a rack.
    """

    reads: bool
    native: bool = False
    kraft: bool = False
    synthetic: bool = False
    rows: tuple[Row, ...] = ()
    sent: Mapping[tuple[int, int], int] = field(default_factory=dict)
    recoded: frozenset[tuple[int, int]] = frozenset()
    rackless: int | None = None

    def offers(self, forms: Collection[HintForm], *, topic_ids: bool) -> dict[int, int]:
        """Return the maxima that are offered in place of the broker's, by API key.

        ``forms``: those that the client can use; ``topic_ids``: whether the cluster has them, with
        names for all.
        """
        return {
            row.key: row.offered
            for row in self.rows
            if row.form in forms and (topic_ids or not row.topic_ids)
        }

    def reading(self) -> "Plan":
        """Return the plan for a link whose frames must be looked at in any case."""
        return self if self.reads else replace(self, reads=True)


#: Nothing is raised, frames are looked at: until the broker's versions are known, and where
#: hints are only counted.
READ_ONLY = Plan(reads=True)
#: A plain relay.
PASS = Plan(reads=False)


def plan_for(maxima: Mapping[int, int], *, synthetic: bool = False) -> Plan:
    """Return the plan for a broker that takes ``maxima`` (maximum version by API key).

    A broker that is native, or whose Metadata has no reliable epochs, passes through.
    ``synthetic``: topic ids are synthetic.
    """
    if maxima.get(ApiKey.PRODUCE, -1) >= _NATIVE_PRODUCE:
        return Plan(reads=False, native=True)
    if maxima.get(ApiKey.METADATA, -1) < metadata.OLDEST:
        return PASS
    if synthetic:
        maxima = {**maxima, ApiKey.FETCH: min(maxima.get(ApiKey.FETCH, -1), _NEWEST_BY_NAME)}
    every = ROWS_SYNTHETIC if synthetic else ROWS
    rows = tuple(row for row in every if maxima.get(row.key) == row.takes)
    sent: dict[tuple[int, int], int] = {
        (row.key, asked): row.takes
        for row in rows
        for asked in range(row.takes + 1, row.offered + 1)
    }
    if synthetic:
        # Where the broker takes the version, ids are still to be put in.
        takes = maxima[ApiKey.METADATA]
        with_ids = range(metadata.TOPIC_IDS_FROM, metadata.NEWEST + 1)
        sent |= {(ApiKey.METADATA, asked): min(asked, takes) for asked in with_ids}
    recoded = frozenset(cell for cell, takes in sent.items() if (cell[0], takes) not in RESTAMPED)
    forgets_epochs = maxima.get(ApiKey.JOIN_GROUP, -1) == _JOIN_GROUP_OF_2_4
    rackless = _LEADERS_ALONE if forgets_epochs else None
    return Plan(
        reads=True,
        kraft=_DESCRIBE_QUORUM in maxima,
        synthetic=synthetic,
        rows=rows,
        sent=sent,
        recoded=recoded,
        rackless=rackless,
    )
