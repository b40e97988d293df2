"""What must hold in every world: each rule has a name, and yields what breaks it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tests.world.clients import Client, Seen
from tests.world.happenings import BUSY, CALM
from tests.world.model.releases import PRODUCE
from tests.world.model.truth import Alive, Deleted, Leader, Term, Topic
from tests.world.product import DEADLINE, KRAFT_DEADLINE, LAG, POLL, SHARED, Proxy
from tests.world.progress import Nearby, Twin, behind
from tests.world.rack_readers import RACKS, Naming
from tests.world.wire import Endpoint
from tests.world.world import AWAKE, CLOSING, END, LOOK, PAUSE, World

#: What floating point may add to a bound.
_EPSILON = 1e-6
#: Requests of a process to one broker in any second: a hundred rounds of questions with their
#: burst, each by Metadata and ListOffsets; the same with Metadata in every fourth round through the
#: listener of a broker that is taken for another; polls.
_MOST_ASKED = 340
#: As many while the world rests, with no client and nothing held: polls alone.
_MOST_AT_REST = 3.0
#: Metadata of all topics that a process asks one broker for in any second: polls, and at most five
#: because of unknown ids.
_MOST_WHOLE = 10
#: Hundredths of a second in which one client meets errors, of any second, from which on a twin must
#: meet as many: five times the back-off of its Metadata.
_MOST_ERRORS = 50
#: Twins that are looked at, where a world's clients fare ill.
_TWINS = 30
#: Of so many worlds one is compared with its twins in how far clients come: that is expensive.
_EACH = 4
#: Partitions of a topic that has grown.
_MOST_PARTITIONS = 4
#: Seconds within which processes hear where brokers are that have changed their addresses.
_MOVED = POLL + 2.0
#: Seconds after which a decision of the process that decides is not followed any more by a worker.
_STALE = max(DEADLINE, KRAFT_DEADLINE) + 0.2
#: Seconds in which a client at peace has a success of each partition.
_PROGRESS = 2.0


class Broken(NamedTuple):
    """A rule, by name, and how it was broken. ``at``: seconds since the world began."""

    rule: str
    at: float
    text: str


class Lived(NamedTuple):
    """A world with the proxy. ``twin``: lives the same world without it; ``newer``: with brokers
    of a release that takes Fetch by topic ids, as the proxy does. ``nearby``: lives worlds that are
    nearly the same.
    """

    world: World
    twin: Twin
    newer: Twin
    nearby: Nearby


Found = Iterator[tuple[float, str]]


def _hints(world: World) -> Iterator[tuple[Seen, str]]:
    """Iterate over the proxy's hints, and not over those of brokers that give hints themselves."""
    for client in world.clients:
        for seen in client.seen:
            if seen.hint is not None and not _is_native(world, seen):
                topic = f"{seen.name}-{seen.place[1]}"
                text = f"{client.name} learns that {seen.hint.node} leads {topic} at epoch "
                yield seen, f"{text}{seen.hint.epoch}"


def _is_native(world: World, seen: Seen) -> bool:
    return world.refusals[seen.request][seen.name, seen.place[1]].native


def hint_was_true(lived: Lived) -> Found:
    """A hint's leader and epoch were true in this incarnation of the topic, or in a later one.

    A client that gives an id means that topic. A broker may answer for the recreated one: one that
    knows names only, or whose answer has waited since before.

    One limit is stated. Of brokers that have just changed their addresses, the hint may have the
    node that was there before. It leads to the leader even so.
    """
    world = lived.world
    for seen, text in _hints(world):
        refusal = world.refusals[seen.request][seen.name, seen.place[1]]
        terms = [
            term for term in world.truth.terms(seen.name, seen.place[1]) if term.leader == seen.hint
        ]
        if not terms and not _leads_to_the_leader(world, seen):
            yield seen.at, f"{text}, which was never true"
        if not terms:
            continue
        named = world.truth.issued.get(seen.place[0])
        meant = refusal.incarnation if named is None else named
        former = all(term.incarnation < meant for term in terms)
        if former and (named is not None or not world.just_learnt(seen, refusal)):
            yield seen.at, f"{text}, which was true of a former topic of this name"


def _leads_to_the_leader(world: World, seen: Seen) -> bool:
    """Whether a hint of a swapped broker has the leader's address and epoch."""
    if seen.hint is None or not _just_swapped(world, seen.at):
        return False
    leaders = (term.leader for term in world.truth.terms(seen.name, seen.place[1]))
    nodes = [leader.node for leader in leaders if leader.epoch == seen.hint.epoch]
    return any(world.addresses[n] == world.former_addresses[seen.hint.node] for n in nodes)


def hint_is_not_over(lived: Lived) -> Found:
    """A hint's leader still led when the broker answered, or that broker itself knew no newer one.

    Three limits are stated. An error within a second after the proxy learnt of a move is taken for
    one of that. A consumer that says which topic and epoch it knows gets what is newer. And brokers
    that have just changed their addresses may be taken for each other.
    """
    world = lived.world
    for seen, text in _hints(world):
        assert seen.hint is not None
        refusal = world.refusals[seen.request][seen.name, seen.place[1]]
        by_id = seen.place[0] in world.truth.issued
        itself = seen.hint.node == refusal.node and not _just_swapped(world, seen.at)
        limited = by_id and not itself
        if limited or world.just_learnt(seen, refusal):
            continue
        of_topic = [
            term
            for term in world.truth.terms(seen.name, seen.place[1])
            if term.incarnation >= refusal.incarnation
        ]
        terms = [term for term in of_topic if term.leader == seen.hint]
        # Its epoch has risen since, but it leads.
        leader = seen.hint.node
        if any(t.leader.node == leader and t.since <= refusal.at < t.until for t in of_topic):
            continue
        # A broker that has not learnt yet that a topic was recreated knows a higher epoch.
        newest = (refusal.incarnation, refusal.known)
        if any((term.incarnation, seen.hint.epoch) >= newest for term in terms):
            continue
        if terms and all(term.until < refusal.at for term in terms):
            yield seen.at, f"{text}, which was over at {max(term.until for term in terms):.3f}"


def hint_is_not_known_to_be_over(lived: Lived) -> Found:
    """No hint comes when its process has known of a higher epoch for longer than it holds anything.

    So what was decided before a worker was stopped is not given when it goes on. It is not looked
    at where the topic was recreated or brokers have changed their addresses.
    """
    world = lived.world
    for seen, text in _hints(world):
        refusal = world.refusals[seen.request][seen.name, seen.place[1]]
        deleted = any(
            isinstance(record, Deleted) and record.name == seen.name and at <= seen.at
            for at, record in world.truth.log
        )
        if deleted or seen.at >= world.swapped_at >= 0.0:
            continue
        known = world.higher_known_at(seen, refusal)
        if known < seen.at - _STALE - world.profile.latency:
            yield seen.at, f"{text}, and its process knew a higher one at {known:.3f}"


def hint_is_news(lived: Lived) -> Found:
    """A hint's epoch is above the one that the client used."""
    for seen, text in _hints(lived.world):
        refusal = lived.world.refusals[seen.request][seen.name, seen.place[1]]
        if seen.hint is not None and seen.hint.epoch <= refusal.client_epoch:
            yield seen.at, f"{text}, and used {refusal.client_epoch}"


def hint_has_its_leaders_endpoint(lived: Lived) -> Found:
    """A hint comes with the endpoint at which its leader is advertised, where there is room.

    What is advertised is known as late as brokers learn of it.
    """
    for seen, text in _hints(lived.world):
        room = seen.version >= (10 if seen.api == PRODUCE else 16)
        endpoints = _endpoints(lived.world, seen.hint) if seen.hint and room else {None}
        if seen.endpoint not in endpoints and not _just_swapped(lived.world, seen.at):
            yield seen.at, f"{text}, at {seen.endpoint}"


def _endpoints(world: World, leader: Leader) -> set[Endpoint | None]:
    """Return those that a leader has been registered at since it was elected."""
    since = min((t.since for _, t in _terms(world) if t.leader == leader), default=0.0)
    listed = [
        (at, record.addresses[leader.node])
        for at, record in world.truth.log
        if isinstance(record, Alive) and leader.node in record.addresses
    ]
    before = [address for at, address in listed if at <= since][-1:]
    after = [address for at, address in listed if at > since]
    return {world.endpoints[address] for address in before + after}


def nothing_is_held_too_long(lived: Lived) -> Found:
    """No response is held beyond the deadline, and no link for more than that in a second."""
    bound = KRAFT_DEADLINE if lived.world.profile.kraft else DEADLINE
    for proxy in lived.world.proxies:
        # With workers a response waits besides until both processes have learnt of it, and while
        # its own does nothing.
        lag = 2 * LAG if lived.world.profile.workers > 1 else 0.0
        yield from _held_too_long(proxy, bound, lag)


def _held_too_long(proxy: Proxy, bound: float, lag: float) -> Found:
    by_link: dict[int, list[tuple[float, float]]] = {}
    for hold in proxy.holds:
        if any(hold.since <= stop.until and hold.until >= stop.since for stop in proxy.stops):
            continue
        if hold.until - hold.since > bound + lag + _EPSILON:
            yield hold.until, f"a response was held for {hold.until - hold.since:.3f} s"
        holds = by_link.setdefault(hold.link, [])
        holds.append((hold.since, hold.until))
        spent = sum(
            max(until - max(since, hold.until - 1.0) - lag, 0.0)
            for since, until in holds
            if until > hold.until - 1
        )
        if spent > bound + _EPSILON:
            yield hold.until, f"link {hold.link} was held for {spent:.3f} s of a second"


def memory_stays_within_the_budget(lived: Lived) -> Found:
    """The links of a process keep no more bytes than they may, however many errors there are."""
    for proxy in lived.world.proxies:
        yield from ((at, f"{proxy.name}: links keep {size} bytes") for at, size in proxy.exceeded)


def clients_without_hints_get_their_brokers_bytes(lived: Lived) -> Found:
    """A client that uses no hint gets its broker's bytes, whether errors were held or not."""
    for proxy in lived.world.proxies:
        yield from ((at, f"{proxy.name} changed bytes of {link}") for at, link in proxy.altered)


def nothing_is_broken(lived: Lived) -> Found:
    """The proxy reports no defect of its own, and understands all that is said."""
    for proxy in lived.world.proxies:
        yield from proxy.defects


def views_go_forward(lived: Lived) -> Found:
    """No view goes back to a lower epoch of the same topic, nor to another leader at the same one.

    One limit is stated. The leader was taken for another node if brokers had just changed their
    addresses.
    """
    for proxy in lived.world.proxies:
        for at, topic, partition, before, leader in proxy.moves:
            terms = lived.world.truth.terms(topic, partition)
            incarnations = {term.incarnation for term in terms if term.since < at}
            least = before if at >= lived.world.swapped_at else before + 1
            if leader.epoch < least and len(incarnations) == 1:
                text = f"{proxy.name} goes back from epoch {before} of {topic}-{partition}"
                yield at, f"{text} to {leader.epoch}"


def brokers_are_known(lived: Lived) -> Found:
    """No broker is proved to be another than it is.

    Two limits are stated. Brokers are asked by name: one that leads a topic at the epoch at which
    another node leads the former, or the next, of its name is taken for that until it is asked
    again, which it cannot be while it is away. And one that has changed its address is taken for
    the one that was there before, until the process has learnt of it; what it is asked then may be
    one of the former kind.
    """
    for proxy in lived.world.proxies:
        since: dict[int, float] = {}
        last: dict[int, float] = {}
        for at, node, proved, asked in proxy.mistaken:
            begins = at - last.get(node, -1.0) > 2 * LOOK
            if begins or not asked or _just_swapped(lived.world, at):
                since[node] = at
            last[node] = at
            if _just_swapped(lived.world, at):
                continue
            long = at - since[node] > POLL + 2.0
            if long or not _confusable(lived.world, node, proved):
                yield at, f"broker {node} is taken for {proved}"


def _just_swapped(world: World, at: float) -> bool:
    """Whether what a broker says may still be taken for the one's that had its address before."""
    return 0.0 <= at - world.swapped_at < _MOVED


def _confusable(world: World, node: int, proved: int) -> bool:
    """Whether two topics of one name were led by these nodes at the same epoch."""
    led = {
        leader: {
            (place, term.leader.epoch, term.incarnation)
            for place, term in _terms(world)
            if term.leader.node == leader
        }
        for leader in (node, proved)
    }
    return any(
        one[:2] == other[:2] and one[2] != other[2] for one in led[node] for other in led[proved]
    )


def _terms(world: World) -> Iterator[tuple[tuple[str, int], Term]]:
    """Iterate over who led which partition, ever."""
    for name in (BUSY, CALM):
        for partition in range(_MOST_PARTITIONS):
            for term in world.truth.terms(name, partition):
                yield (name, partition), term


def brokers_are_asked_seldom(lived: Lived) -> Found:
    """The proxy asks no broker more often than is stated, and little while the world rests."""
    for node, broker in lived.world.brokers.items():
        for name in {asked.by: None for asked in broker.asked}:
            times = [asked.at for asked in broker.asked if asked.by == name]
            for first, last in zip(times, times[_MOST_ASKED:], strict=False):
                if last - first < 1.0:
                    yield last, f"{name} asked broker {node} {_MOST_ASKED} times within a second"
                    break
            resting = [at for at in times if PAUSE + 2.0 <= at < AWAKE]
            if len(resting) > _MOST_AT_REST * (AWAKE - PAUSE - 2.0):
                yield AWAKE, f"{name} asked broker {node} {len(resting)} times at rest"


def everything_is_asked_for_seldom(lived: Lived) -> Found:
    """Whatever clients do, no broker is asked for all topics more often than is stated."""
    for node, broker in lived.world.brokers.items():
        for name in {asked.by: None for asked in broker.asked}:
            times = [asked.at for asked in broker.asked if asked.by == name and asked.whole]
            if (at := _too_often(times, _MOST_WHOLE)) is not None:
                yield at, f"{name} asked broker {node} {_MOST_WHOLE} times for all topics"


def _too_often(times: Sequence[float], most: int) -> float | None:
    """Return when something came for the ``most``-th time within a second."""
    for first, last in zip(times, times[most:], strict=False):
        if last - first < 1.0:
            return last
    return None


def ids_stay_offered(lived: Lived) -> Found:
    """No client can have synthetic ids withheld that all brokers give.

    One limit is stated: brokers of 3.7 have ids themselves, so there synthetic ones are to be given
    up before the upgrade.
    """
    for proxy in lived.world.proxies:
        for at in proxy.withheld:
            if at < lived.world.native_since:
                yield at, f"{proxy.name} offers no ids any more"


def crossed_routes_are_found(lived: Lived) -> Found:
    """Routes that lead to each other's brokers are found, and no other route is.

    One limit is stated: both brokers must lead something. Then it is found while the world rests,
    if it was not before.
    """
    world = lived.world
    crossed = world.profile.crossed
    found = {node: at for proxy in world.proxies for at, node in proxy.crossed if at < AWAKE}
    yield from ((at, f"{node} is crossed") for node, at in found.items() if node not in crossed)
    led = {term.leader.node for _, term in _terms(world) if term.since < PAUSE <= term.until}
    if crossed and not found and led.issuperset(crossed):
        yield AWAKE, "no route is found to be crossed"


def clients_do_not_spin(lived: Lived) -> Found:
    """No client meets error upon error that it does not meet without the proxy.

    Some clients try again without a pause until their next Metadata, so there may be hundreds
    within a tenth of a second. What counts is for how long. A broker that has not learnt of a
    recreated topic does not know its id, and Java does not pause then: with newer brokers it does
    the same without the proxy. There it may come to that later: without a hint it backs off, and
    then a Fetch of other partitions may be under way. So where it met an error after it had waited
    for its turn, that wait counts.
    """
    for number, client in enumerate(lived.world.clients):
        at = _spins_at(client)
        if at is None:
            continue
        others = (
            twin(luck, frozenset({number})).clients[number]
            for twin in (lived.twin, lived.newer)
            for luck in range(_TWINS)
        )
        if all(_spins_at(other, waits=True) is None for other in others):
            yield at, f"{client.name} met errors in {_MOST_ERRORS} hundredths of a second"


def _spins_at(client: Client, *, waits: bool = False) -> float | None:
    """Return when a client has met too many errors; ``waits``: waits for them count, too."""
    hundredths = {int(seen.at * 100) for seen in client.seen}
    if waits:
        asked = {(seen.name, seen.place[1], seen.asked_at) for seen in client.seen}
        for place, work in client.work.items():
            for since, until, _ in work.waited:
                if (*place, until) in asked:
                    hundredths.update(range(int(since * 100), int(until * 100)))
    return _too_often([hundredth / 100 for hundredth in sorted(hundredths)], _MOST_ERRORS)


def at_rest_the_view_is_right(lived: Lived) -> Found:
    """When the world rests the view is the world's, nothing is in doubt and nothing pending."""
    yield from ((CLOSING, text) for text in lived.world.at_rest)


def after_a_rest_hints_are_given(lived: Lived) -> Found:
    """An error of a move after a rest gets its hint, where a client can use one.

    A client that knows an epoch of a former topic asked the wrong broker before that move as well.
    Its errors are not of the move, and are not held for a second after those before. And where
    links may keep little, an error may have to do without; or where another one in its response had
    its hint, and waited for it as long as it is to.
    """
    world = lived.world
    if any(at >= CLOSING for proxy in world.proxies for at in proxy.forgone):
        return
    for name, partition, node in world.moved:
        errors = [
            seen
            for client in world.clients
            if (CLOSING, client.name, name, partition) not in world.behind
            for seen in client.seen
            if (seen.name, seen.place[1]) == (name, partition)
            and seen.at >= CLOSING
            and _refused_by(world, seen) == node
            and seen.version >= (10 if seen.api == PRODUCE else 16)
            and not _others_had_waited(world, client, seen)
        ]
        if errors and all(seen.hint is None for seen in errors):
            yield CLOSING, f"no hint of {name}-{partition}, which {node} has lost"


def _others_had_waited(world: World, client: Client, seen: Seen) -> bool:
    """Whether others in the response had their hint, and it was held as long as it may be then."""
    waited = any(
        hold.until - hold.since >= SHARED - _EPSILON
        for proxy in world.proxies
        for hold in proxy.holds
        if (hold.client, hold.key) == (client.name, seen.api)
        and seen.asked_at <= hold.since <= hold.until <= seen.at
    )
    return waited and any(one.request == seen.request and one.hint for one in client.seen)


def _refused_by(world: World, seen: Seen) -> int | None:
    refusal = world.refusals.get(seen.request, {}).get((seen.name, seen.place[1]))
    return refusal.node if refusal is not None else None


def clients_go_on(lived: Lived) -> Found:
    """A client that makes progress without the proxy does so with it.

    One limit is stated: see :meth:`tests.world.world.World.keeps_lost_id`.
    """
    for number, client in enumerate(lived.world.clients):
        stuck = [
            (place, begin, end)
            for begin, end in ((PAUSE - _PROGRESS, PAUSE), (END - _PROGRESS, END))
            for place in _places(lived.world)
            if not _worked(client, place, begin, end)
            # It ignores what is true of the recreated topic without the proxy as well, if it has
            # learnt of the former one's epoch in time.
            and (end, client.name, *place) not in lived.world.behind
            and not lived.world.keeps_lost_id(client, end)
        ]
        if not stuck:
            continue
        twin = lived.twin(0, frozenset({number})).clients[number]
        for place, begin, end in stuck:
            if _worked(twin, place, begin, end):
                what = f"{client.name} gets nowhere with {place[0]}-{place[1]}"
                yield end, f"{what}, and does so without the proxy"


def replicas_are_named_rightly(lived: Lived) -> Found:
    """A replica that is named is a follower in the reader's rack, and in sync once that is known;
    or it is the leader, named by a follower that is not. It has a replica of what the reader reads,
    as far as the reader's epoch shows that. Nothing is named with an error, and none twice on one
    connection: a world is shorter than the pause. One that comes back each time is named it each
    time, without records if it is in the reader's rack.
    """
    world = lived.world
    for reader in world.rack_readers:
        named = set()
        for naming in reader.namings:
            name, partition = naming.place
            text = f"{reader.name} is told to read {name}-{partition} from {naming.node}"
            terms = [*world.truth.terms(name, partition)]
            led = {term.leader.node for term in terms if term.since <= naming.at}
            if naming.error:
                yield naming.at, f"{text}, with error {naming.error}"
            if RACKS[naming.node] != reader.rack and naming.node not in led:
                yield naming.at, f"{text}, which is in another rack and never led"
            if naming.node not in _replicas(world, naming):
                yield naming.at, f"{text}, which has no replica of it"
            incarnations = {term.incarnation for term in terms if term.since <= naming.at}
            what = naming.connection, naming.place, max(incarnations, default=0), naming.node
            if what in named and not reader.comes_back:
                yield naming.at, f"{text}, again"
            if reader.comes_back and naming.records and RACKS[naming.node] == reader.rack:
                yield naming.at, f"{text}, and gets records beside that"
            named.add(what)
            lags = naming.node == world.lags and naming.at >= AWAKE
            if lags and not _has_led(world, naming.place, naming.at):
                yield naming.at, f"{text}, which is out of sync"


def _replicas(world: World, naming: Naming) -> set[int]:
    """Return who has had replicas at the reader's epoch by then, of any topic of that name."""
    name, partition = naming.place
    return {
        node
        for at, record in world.truth.log
        if isinstance(record, Topic) and record.name == name and at <= naming.at
        if partition < len(record.leaders) and record.leaders[partition].epoch == naming.epoch
        for node in record.replicas[partition]
    }


def readers_leave_what_is_out_of_sync(lived: Lived) -> Found:
    """At the end nobody reads from a follower with a proxy that is out of sync.

    One that has just led is taken for in sync until the next poll. In front of a broker of 3.7 all
    passes. And only in a response in which a partition stands the reader can be sent away, once it
    is known which broker that is: one that has another's address and leads nothing is not known
    until all others lead something. Of a hidden topic without an id, no poll says whether it was
    recreated, so it stays in doubt while Metadata that passes contradicts what is known.
    """
    world = lived.world
    # A proxy stays at its address where brokers have changed theirs.
    address = world.addresses[world.lags]
    front = world.fronts.get(address)
    if front is None or world.brokers[world.lags].model.release.hints:
        return
    if front.unknown_at.get(address, 0.0) >= END - _PROGRESS:
        return
    for reader in world.rack_readers:
        for (name, partition), (node, leader) in reader.replicas.items():
            if node != world.lags or node == leader or _has_led(world, (name, partition), END):
                continue
            if name in world.profile.hidden and not world.profile.ids:
                continue
            if reader.shown[name, partition] >= END - _PROGRESS:
                yield END, f"{reader.name} reads {name}-{partition} from {node}, out of sync"


def _has_led(world: World, place: tuple[str, int], at: float) -> bool:
    """Whether the broker that lags leads a partition, or did so at the last poll of a proxy."""
    terms = world.truth.terms(*place)
    return any(t.leader.node == world.lags for t in terms if t.until >= at - POLL)


def readers_go_on(lived: Lived) -> Found:
    """At peace each reader is served each partition to which nothing happens but elections."""
    for reader in lived.world.rack_readers:
        for place in _places(lived.world):
            if place[0] == CALM and not _worked(reader, place, PAUSE - _PROGRESS, PAUSE):
                yield PAUSE, f"{reader.name} gets nowhere with {place[0]}-{place[1]}"


def _places(world: World) -> Iterator[tuple[str, int]]:
    for name, topic in world.truth.now.topics.items():
        for partition in range(len(topic.leaders)):
            yield name, partition


def _worked(client: Client, place: tuple[str, int], begin: float, end: float) -> bool:
    work = client.work.get(place)
    return work is not None and any(begin <= one.at < end for one in work.served)


def clients_make_progress(lived: Lived) -> Found:
    """No client makes less progress than without the proxy, but for the holds' bound."""
    if lived.world.seed % _EACH:
        return
    for late in behind(lived.world, lived.twin, lived.nearby, _TWINS):
        name, partition = late.place
        text = f"{late.client} was served {name}-{partition} for {late.seconds:.3f} s less"
        yield late.at, f"{text} than without the proxy"


RULES: Final[tuple[Callable[[Lived], Found], ...]] = (
    hint_was_true,
    hint_is_not_over,
    hint_is_not_known_to_be_over,
    hint_is_news,
    hint_has_its_leaders_endpoint,
    nothing_is_held_too_long,
    memory_stays_within_the_budget,
    clients_without_hints_get_their_brokers_bytes,
    nothing_is_broken,
    views_go_forward,
    brokers_are_known,
    brokers_are_asked_seldom,
    everything_is_asked_for_seldom,
    ids_stay_offered,
    crossed_routes_are_found,
    clients_do_not_spin,
    at_rest_the_view_is_right,
    after_a_rest_hints_are_given,
    clients_go_on,
    clients_make_progress,
    replicas_are_named_rightly,
    readers_leave_what_is_out_of_sync,
    readers_go_on,
)


#: What holds where routes are crossed: nothing works then.
_CROSSED: Final = (nothing_is_broken, crossed_routes_are_found)


def broken(lived: Lived) -> list[Broken]:
    """Return all that was broken, in the order of its times."""
    rules = _CROSSED if lived.world.profile.crossed else RULES
    found = [Broken(rule.__name__, at, text) for rule in rules for at, text in rule(lived)]
    return sorted(found, key=lambda one: one.at)
