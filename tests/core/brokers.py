"""Routes in front of brokers of every kind that the plan distinguishes."""

from collections.abc import Mapping

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.plan import plan_for
from tests.core.conversation import NODES, ONE, TWO
from tests.core.samples import BROKER_3_6

P, F, L, M, J, V = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.JOIN_GROUP,
    ApiKey.API_VERSIONS,
)
#: Maxima of brokers by release, as their ApiVersions say them.
_RELEASES: Mapping[str, Mapping[int, int]] = {
    "2.4": {P: 8, F: 11, L: 5, M: 9, J: 6, V: 3},
    "2.6": {P: 8, F: 11, L: 5, M: 9, J: 7, V: 3},
    "2.8": {P: 9, F: 12, L: 6, M: 11, V: 3},
    "3.4": {P: 9, F: 13, L: 7, M: 12, V: 3},
    "3.6": BROKER_3_6,
    "3.7": {P: 10, F: 16, L: 8, M: 12, V: 3},
}
_UNKNOWN_TOPIC = 3
#: Ends the names of those before which topic ids are synthetic.
SYNTHETIC = "+"
BROKERS: Mapping[str, Mapping[int, int]] = {
    **_RELEASES,
    **{release + SYNTHETIC: _RELEASES[release] for release in ("2.4", "2.6", "2.8", "3.6")},
}
#: The topics of :func:`route_before`, by id.
NAMES = {ONE: "one", TWO: "a-topic-with-quite-a-long-name"}
CLUSTER = "k"
#: The same by synthetic ids.
NAMES_SYNTHETIC = {synthetic_id(CLUSTER, name): name for name in NAMES.values()}


def names_before(release: str) -> Mapping[bytes, str]:
    """Return the topics by the ids that clients have of them."""
    return NAMES_SYNTHETIC if release.endswith(SYNTHETIC) else NAMES


def route_before(release: str, mode: Mode = Mode.ON) -> Route:
    """Return a route in front of a broker of a release, of which versions and topics are known."""
    view = LeaderView(CLUSTER)
    for node, (topic_id, name) in enumerate(NAMES.items()):
        known = ZERO_ID if release.startswith(("2.4", "2.6")) else topic_id
        view.learn(TopicMetadata(0, name, known, (Led(0, 1, 5), Led(1, 1, 6))), node)
    view.hidden.take(TopicMetadata(_UNKNOWN_TOPIC, ANY_TOPIC, ZERO_ID, ()), "route")
    synthetic = release.endswith(SYNTHETIC)
    return Route(
        "route",
        mode,
        broker=BrokerState(
            plan=plan_for(BROKERS[release]),
            view=view,
            endpoints=NODES,
            ids_everywhere=synthetic,
            synthetic_plan=plan_for(BROKERS[release], synthetic=True) if synthetic else None,
        ),
        config=RouteConfig(synthesize=synthetic),
    )
