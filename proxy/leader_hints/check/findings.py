"""Findings: what `leader-hints check` can say of a route or a machine, and what to do about it.

The texts are a table. Words in braces are filled in where a finding is made.
docs/troubleshooting.md has the same table for people.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """``PROBLEM``: a problem; hints or clients fail until it is fixed. ``ADVICE``: it works with
    limits, or something could not be checked. ``FINE``: this was checked and is right."""

    PROBLEM = "mend"
    ADVICE = "advice"
    FINE = "fine"


class Entry(NamedTuple):
    """A kind of finding. ``text`` says what was found, ``meaning`` what comes of it, ``remedy``
    what to do, where something is to be done."""

    severity: Severity
    text: str
    meaning: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was found. ``route``: its name, ``None`` for the machine."""

    code: str
    severity: Severity
    route: str | None
    text: str
    remedy: str


_PROBLEM, _ADVICE, _FINE = Severity.PROBLEM, Severity.ADVICE, Severity.FINE

#: By code. Codes are for programs: once published they keep their meaning.
TABLE: dict[str, Entry] = {
    # The broker behind the route.
    "upstream_unresolved": Entry(
        _PROBLEM,
        "the name of upstream {upstream} leads to no address: {reason}",
        "No client can be served on this route.",
        "Correct the host name in the route, or this machine's name resolution.",
    ),
    "upstream_unreachable": Entry(
        _PROBLEM,
        "upstream {upstream} is not reached: {reason}",
        "No client can be served on this route.",
        "Check that the broker runs and listens there, and that no firewall blocks the way. "
        "Correct the route if the broker's listener is elsewhere.",
    ),
    "upstream_tls": Entry(
        _PROBLEM,
        "upstream {upstream} uses TLS",
        "The route is set to use no TLS with its broker, so the broker refuses all connections.",
        "Set the route's upstream_tls.enabled: true, and client_tls.mode: terminate if clients use "
        "TLS; or client_tls.mode: pass to relay TLS unchanged, without hints.",
    ),
    "upstream_http": Entry(
        _PROBLEM,
        "upstream {upstream} is an HTTP server",
        "It is not a broker, but perhaps a REST proxy, a metrics exporter or an admin console.",
        "Give the address of the broker's own listener as upstream.",
    ),
    "upstream_not_kafka": Entry(
        _PROBLEM,
        "upstream {upstream} takes connections but does not answer as a broker: {reason}",
        "No client can be served on this route.",
        "Find out what listens there. If it is the broker, check whether it is still starting or "
        "hangs. Its log says why it closes a connection.",
    ),
    "upstream_sasl": Entry(
        _PROBLEM,
        "upstream {upstream} asks for SASL ({mechanisms})",
        "Clients authenticate through the proxy as they do without it, but the proxy's own "
        "connections do not authenticate: it learns no leaders and gives no hints.",
        "Give the proxy a user of its own in the route's sasl settings, with Describe on all "
        "topics; docs/security.md says how.",
    ),
    "upstream_metadata": Entry(
        _PROBLEM,
        "upstream {upstream} answers ApiVersions but not Metadata: {reason}",
        "The proxy learns no leaders and gives no hints.",
        "See the broker's log. If it is slow, raise subscription.answer_timeout_ms.",
    ),
    "upstream_is_proxy": Entry(
        _PROBLEM,
        "upstream {upstream} is itself a leader-hints proxy: what it offers depends on the client",
        "There are two proxies in a row. The second one gives the hints and counts them, and they "
        "pass through the first.",
        "Give the address of the broker's own listener as upstream, not the advertised one.",
    ),
    "several_brokers": Entry(
        _PROBLEM,
        "there are several brokers behind upstream {upstream}: {nodes}",
        "A client that goes to one broker reaches another, so most of its requests fail. Hints "
        "would apply the state of one broker to another.",
        "Give one route for each broker, with that broker's own address as upstream: no load "
        "balancer, no name of several machines.",
    ),
    "broker_too_old": Entry(
        _PROBLEM,
        "the broker is older than 2.4: its newest Metadata is version {metadata}",
        "Its Metadata has no reliable leader epochs: the route is a plain relay without hints.",
        "Upgrade the broker to 2.4 or newer, or remove the route.",
    ),
    "broker_native": Entry(
        _ADVICE,
        "the broker gives hints itself (Produce {produce})",
        "All traffic passes unchanged; the proxy has nothing to do.",
        "Once all brokers are 3.7 or newer, advertise their own addresses and remove the proxy.",
    ),
    "broker_not_identified": Entry(
        _ADVICE,
        "which node is behind upstream {upstream} is not known: it leads no partition now",
        "The proxy identifies a broker by the partitions that it leads. It could not check whether "
        "several brokers are behind the route, or routes are crossed.",
        "Check again when the broker leads a partition.",
    ),
    "kraft_hold": Entry(
        _ADVICE,
        "the cluster uses KRaft, and holds last at most {hold_ms} ms",
        "KRaft brokers learn up to half a second late that they lead. Most hints would come too "
        "late for the hold.",
        "Set hold.kraft_ms: 500, as by default, and leave hold.deadline_ms and "
        "hold.link_ms_per_second above 0.",
    ),
    "no_topic_ids": Entry(
        _ADVICE,
        "the broker knows no topic ids: it is older than 2.8",
        "Fetch 16 needs topic ids. librdkafka and franz-go get hints on Produce only; Java and "
        "kafka-python get them on Fetch too.",
        "Set topic_ids: synthesize, once all brokers of the cluster are behind the proxy, or "
        "upgrade them to 2.8 or newer.",
    ),
    "topic_ids_made_up": Entry(
        _ADVICE,
        "the brokers give no topic ids; the proxy synthesizes them",
        "librdkafka and franz-go get hints on Fetch too, once all brokers of the cluster are "
        "behind proxies that synthesize them. Until then the log line topic_ids_withheld names a "
        "broker.",
        "Nothing, if the log has the line topic_ids_offered.",
    ),
    "topic_ids_off": Entry(
        _ADVICE,
        "{without} of {topics} topics have no topic id",
        "Fetch 16 needs topic ids, which a ZooKeeper cluster gives from "
        "inter.broker.protocol.version 2.8 on. In front of brokers of 2.8 and 3.0 "
        "librdkafka and franz-go get hints on Produce only.",
        "Set inter.broker.protocol.version to 2.8 or newer on all brokers when their upgrade is "
        "complete.",
    ),
    "racks_known": Entry(
        _FINE,
        "closest_replica is {mode}; racks: {racks}",
        "Consumers with a client.rack can be sent to an in-sync replica in their rack.",
    ),
    "racks_unknown": Entry(
        _ADVICE,
        "closest_replica is {mode}, and the rack of node {nodes} is not known",
        "No consumer is sent to these brokers, nor away from them.",
        "Name their racks in the setting racks, or set broker.rack on the brokers.",
    ),
    "replica_selector": Entry(
        _ADVICE,
        "closest_replica is {mode}, and the broker has a replica selector: {selector}",
        "The brokers choose replicas themselves, and know more of them. The proxy changes no "
        "choice of theirs.",
        "Set closest_replica: off, or remove replica.selector.class from the brokers.",
    ),
    "no_topics": Entry(
        _ADVICE,
        "the cluster has no topics",
        "Topic ids, and which node is behind a route, could not be checked.",
        "Check again when there are topics.",
    ),
    "topics_hidden": Entry(
        _PROBLEM,
        "the proxy may see no topic",
        "The cluster's ACLs hide all topics from it, so it learns no leaders and gives no hints.",
        "Allow Describe on all topics to the principal of the proxy's connections (User:ANONYMOUS "
        "on a listener without authentication) from this machine's address.",
    ),
    "topics_partly_hidden": Entry(
        _ADVICE,
        "the proxy may not see all topics ({topics} are visible)",
        "The cluster's ACLs hide the others, and on those there are no hints. In front of brokers "
        "of 2.8 and 3.0, and with synthetic topic ids, consumers get none on any topic.",
        "Allow Describe on all topics to the principal of the proxy's connections (User:ANONYMOUS "
        "on a listener without authentication) from this machine's address.",
    ),
    "connections_limited": Entry(
        _PROBLEM,
        "the broker takes at most {most} connections from one address, and has {now} in all",
        "To the broker all clients of the proxy come from the proxy's address. Those above the "
        "limit are not served.",
        "Give the proxy's address a limit of its own in the broker's "
        "max.connections.per.ip.overrides, or raise max.connections.per.ip.",
    ),
    "requests_limited": Entry(
        _PROBLEM,
        "the broker takes requests of {largest} bytes, and the proxy refuses those above {allowed}",
        "A client whose request is larger loses its connection.",
        "Set limits.request_bytes to the broker's socket.request.max.bytes or more.",
    ),
    "versions_raised": Entry(
        _FINE,
        "node {node} of cluster {cluster} answers; it takes Produce {produce} and Fetch {fetch}",
        "The proxy can be in front of this broker. What each kind of client gets is listed below.",
    ),
    "hints_not_given": Entry(
        _ADVICE,
        "hints are set to {mode}",
        "No version is raised and no hint is given: observe only counts, off only relays.",
        "Set hints to on when you are ready.",
    ),
    # The address that the proxy listens on.
    "listen_free": Entry(
        _FINE, "{listen} is free to listen on", "The proxy does not run yet, and it can start."
    ),
    "listen_proxy": Entry(
        _FINE,
        "a leader-hints proxy listens on {listen} and raises versions as it should",
        "The check asked as each kind of client, and each was offered the right versions.",
    ),
    "listen_unread": Entry(
        _ADVICE,
        "a broker answers through {listen}, with its own versions",
        "With hints observe or off a proxy changes nothing, so the check cannot distinguish it "
        "from the broker.",
        "Set hints to on to check this.",
    ),
    "listen_unanswered": Entry(
        _ADVICE,
        "{listen} did not answer the check as {client}",
        "The check asks as each kind of client at the same time. What this kind is offered is not "
        "known; the others are offered the right versions.",
        "Run the check again when the machine is less busy; then look for client_refused in the "
        "proxy's log.",
    ),
    "listen_any_port": Entry(
        _ADVICE,
        "{listen} stands for any free port",
        "Which one is known only once the proxy runs, so advertised addresses cannot be checked.",
        "Give the port that the broker advertises.",
    ),
    "listen_refused": Entry(
        _PROBLEM,
        "{listen} cannot be listened on: {reason}",
        "The proxy cannot start.",
        "Listen on an address of this machine (0.0.0.0 for all). Ports below 1024 need privileges.",
    ),
    "listen_taken": Entry(
        _PROBLEM,
        "something else listens on {listen}: {reason}",
        "The proxy cannot start, and clients that are sent there are not served.",
        "End that program, or choose another port and let the broker advertise it.",
    ),
    "listen_connection": Entry(
        _PROBLEM,
        "{listen} cannot be listened on now: an outgoing connection has this port, to {far}",
        "Nothing listens there. The system gives outgoing connections free ports of a range, by "
        "default from 32768 to 60999, and this port is in it. The proxy cannot start while such a "
        "connection has its port.",
        "Choose a port outside of the sysctl net.ipv4.ip_local_port_range and let the broker "
        "advertise it, or list the port in net.ipv4.ip_local_reserved_ports.",
    ),
    "listen_not_raised": Entry(
        _PROBLEM,
        "{listen} answers, but offers {client} {api} {offered} and not {expected}",
        "This is the broker itself, another proxy, or a leader-hints proxy with hints observe or "
        "off or of another version. Clients get no hints through it.",
        "Find out what listens there; start leader-hints with --hints on.",
    ),
    "listen_other_broker": Entry(
        _PROBLEM,
        "the proxy on {listen} leads to node {found}, and upstream {upstream} is node {node}",
        "Another route runs there.",
        "Start the proxy with this route, or correct the route.",
    ),
    # Where the brokers send clients.
    "advertised_right": Entry(
        _FINE,
        "node {node} advertises {address}, which leads to this route",
        "Clients are sent to the proxy.",
    ),
    "advertised_past_proxy": Entry(
        _PROBLEM,
        "node {node} advertises {address}, which leads past the proxy to the broker itself",
        "Clients send one request through the proxy, get the broker's own address, and go there. "
        "There is no error, no hint, and nothing in the proxy's counts.",
        "In the broker's advertised.listeners give the address on which clients reach {listen}, "
        "for the listener of {upstream}, and restart the broker.",
    ),
    "advertised_elsewhere": Entry(
        _PROBLEM,
        "node {node} advertises {address}, where something else answers: {reason}",
        "Clients are sent there and not to this route. If that is this route's proxy, the check "
        "was run elsewhere: run it where the proxy runs, in the same container or network "
        "namespace.",
        "In the broker's advertised.listeners give the address on which clients reach {listen}, "
        "for the listener of {upstream}, and restart the broker.",
    ),
    "advertised_none": Entry(
        _PROBLEM,
        "none of the advertised addresses leads to {listen}: {addresses}",
        "It is not known which node is behind the route, but no node sends clients to the proxy.",
        "In the broker's advertised.listeners give the address on which clients reach {listen}, "
        "for the listener of {upstream}, and restart the broker.",
    ),
    "advertised_unsure": Entry(
        _ADVICE,
        "node {node} advertises {address}; whether that leads to this route is not known",
        "The check cannot distinguish a proxy with hints observe or off from its broker, and the "
        "address is not clearly the one on which the proxy listens.",
        "Set hints to on, or check in the proxy's metrics that counts of Produce and Fetch rise.",
    ),
    "advertised_unresolved": Entry(
        _PROBLEM,
        "node {node} advertises {address}, a name that leads to no address here: {reason}",
        "Clients with the same name resolution cannot reach the broker at all.",
        "Advertise a name that all clients can resolve, or correct the name resolution.",
    ),
    "advertised_unreachable": Entry(
        _PROBLEM,
        "node {node} advertises {address}, which is not reached ({where}): {reason}",
        "Clients are sent there and cannot connect.",
        "Advertise the address on which clients reach {listen}. If this is that address, look for "
        "the obstacle: a firewall, a port that is not forwarded, a wrong host.",
    ),
    "advertised_loopback": Entry(
        _ADVICE,
        "node {node} advertises {address}, a loopback address",
        "Only clients on this very machine can reach it.",
        "Advertise a name or address that clients on other machines can reach, if there are any.",
    ),
    "advertised_twice": Entry(
        _PROBLEM,
        "nodes {nodes} advertise the same address {address}",
        "Clients cannot distinguish these brokers: half of their requests reach the wrong one.",
        "Give each broker a listening address of its own, with a route of its own.",
    ),
    "routes_crossed": Entry(
        _PROBLEM,
        "the address that node {node} advertises, {address}, leads to node {found}",
        "Each request for a partition reaches a broker that does not lead it, and hints would send "
        "clients to the wrong place.",
        "Exchange the upstreams of the routes, or the brokers' advertised addresses.",
    ),
    "broker_unreachable": Entry(
        _PROBLEM,
        "node {node}, another broker of the cluster, is not reached at {address}: {reason}",
        "The proxy asks all brokers for leaders. Without this one, hints come later or not at all. "
        "Clients that are sent there are not served either.",
        "Check that the broker and its proxy run, and that this machine reaches their advertised "
        "addresses.",
    ),
    "broker_without_proxy": Entry(
        _ADVICE,
        "node {node} advertises {address}, which leads to no proxy",
        "Clients get no hints from that broker.",
        "Put a proxy in front of it too, as the roll-out goes on.",
    ),
    # The machine.
    "descriptors_enough": Entry(
        _FINE,
        "{allowed} file descriptors are allowed, enough for {clients} clients; the brokers have "
        "{now} connections now",
        "Each client takes two: its own connection and the one to the broker.",
    ),
    "descriptors_unknown": Entry(
        _ADVICE,
        "{allowed} file descriptors are allowed, enough for {clients} clients; how many there are "
        "is not known",
        "Each client takes two: its own connection and the one to the broker. The brokers' "
        "connections can be counted only on their own machine. The limit is that of this command; "
        "a service has its own.",
        "Compare with the broker's metric connection-count. Raise LimitNOFILE (systemd) or ulimit "
        "-n if that metric is higher.",
    ),
    "descriptors_few": Entry(
        _PROBLEM,
        "{allowed} file descriptors are allowed, and {needed} are needed for the {now} connections "
        "that the brokers have now",
        "Each client takes two: its own connection and the one to the broker. Beyond the limit "
        "clients are not served. The limit is that of this command; a service has its own.",
        "Raise LimitNOFILE (systemd) or ulimit -n well above that.",
    ),
    "clock_synchronised": Entry(
        _FINE,
        "this machine's clock is synchronised, to within {error_ms} ms",
        "Times in logs can be compared with those of other machines. The brokers' clocks were not "
        "checked: only a request that writes shows them.",
    ),
    "clock_not_synchronised": Entry(
        _ADVICE,
        "this machine's clock is not synchronised by what its kernel says",
        "Hints need no clock, but times in logs cannot be compared with those of other machines. "
        "The brokers' clocks were not checked: only a request that writes shows them.",
        "Run an NTP client such as chrony; in a container check the host.",
    ),
    "clock_unknown": Entry(
        _ADVICE,
        "whether this machine's clock is synchronised is not known",
        "Its kernel does not say.",
        "Check the host's NTP client.",
    ),
}


def finding(code: str, route: str | None = None, **words: object) -> Finding:
    """Make a finding; ``words`` fill in the table's texts."""
    entry = TABLE[code]
    return Finding(
        code=code,
        severity=entry.severity,
        route=route,
        text=entry.text.format(**words),
        remedy=entry.remedy.format(**words),
    )
