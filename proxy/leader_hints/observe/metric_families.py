"""Metric families: name, type, labels and meaning of each metric, a table.

Tested in ``tests/observe/test_metrics.py``.
"""

from typing import NamedTuple

PREFIX = "leader_hints_"


class Family(NamedTuple):
    """A metric: its name without prefix and suffix, its type, its labels and what it means."""

    name: str
    type: str
    labels: tuple[str, ...]
    text: str

    @property
    def full_name(self) -> str:
        """The name as Prometheus shows it."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.type, "")
        return f"{PREFIX}{self.name}{suffix}"


#: All metrics but those of the process (process_*), which the library makes.
FAMILIES = {
    family.name: family
    for family in (
        Family("build", "info", ("version", "python"), "What runs."),
        Family("links_open", "gauge", ("route",), "Links open now."),
        Family("links", "counter", ("route",), "Links opened."),
        Family("bytes", "counter", ("route", "direction"), "Bytes received from that side."),
        Family(
            "requests",
            "counter",
            ("route", "api", "asked", "sent"),
            "Requests relayed, by the version asked and the version sent.",
        ),
        Family(
            "responses",
            "counter",
            ("route", "api", "asked"),
            "Responses relayed, by the version asked; of a plain relay they are not distinguished.",
        ),
        Family(
            "passed_raw",
            "counter",
            ("route", "reason"),
            "Messages that passed without being looked at although they should have been.",
        ),
        Family("hints_mode", "gauge", ("route", "mode"), "1 for the route's current hints mode."),
        Family(
            "upstream_up",
            "gauge",
            ("route",),
            "Whether the route's broker answers the proxy's questions, and takes new connections "
            "as far as clients have tried; absent: it is not asked, and no client has failed.",
        ),
        Family(
            "advertised_wrong",
            "gauge",
            ("route", "how"),
            "1 where that is proved: the route's clients meet another broker than they look for "
            "(crossed), or the route's broker is advertised where no proxy is (past).",
        ),
        Family(
            "certificates_unusable",
            "gauge",
            ("route", "group"),
            "1 while the newest TLS files of that group of settings cannot be used; what was read "
            "before holds.",
        ),
        Family(
            "certificate_expiry_timestamp_seconds",
            "gauge",
            ("route", "group"),
            "When the proxy's own certificate expires, or the first of its chain; Unix time.",
        ),
        Family(
            "errors_seen",
            "counter",
            ("route", "api", "error"),
            "Failed partitions that a hint can answer, by Kafka's error code.",
        ),
        Family(
            "hints_given",
            "counter",
            ("route", "api", "mode"),
            "Failed partitions answered with a hint; in mode observe: that would have been.",
        ),
        Family(
            "hints_missed",
            "counter",
            ("route", "api", "mode", "reason"),
            "Failed partitions answered without a hint; in mode observe: that would have been.",
        ),
        Family(
            "errors_settled",
            "counter",
            ("route", "api", "mode", "outcome"),
            "Of the failed partitions in hints_missed: those whose errors wait for settled "
            "Metadata (setting hold.settle), by what came of it: settled, or why not; in mode "
            "observe: what would have come.",
        ),
        Family(
            "consumer_bytes",
            "counter",
            ("route", "broker_rack", "client_rack", "path"),
            "Bytes of Fetch responses to consumers that name a rack, by the rack of the route's "
            "broker (empty: not known) and the consumer's (other: no broker's); path: same or "
            "crossing. Only with the setting closest_replica.",
        ),
        Family(
            "consumer_bytes_avoidable",
            "counter",
            ("route", "broker_rack", "client_rack"),
            "Of these, where it is observed: records that an in-sync replica in the consumer's "
            "rack has, too.",
        ),
        Family(
            "closest_replica_partitions",
            "counter",
            ("route", "outcome"),
            "Partitions in responses to consumers that name a rack, as far as these were looked "
            "at, by whether another replica was named, or why not; see closest-replica.md.",
        ),
        Family("hold_seconds", "histogram", ("route",), "How long error responses were kept back."),
        Family(
            "recovery_seconds",
            "histogram",
            ("route", "api", "hinted"),
            "From a client's first error of a partition until its first success, both seen here.",
        ),
        Family("leader_moves", "counter", ("cluster",), "Partitions that got another leader."),
        Family(
            "epoch_rises",
            "counter",
            ("cluster",),
            "Leader epochs that rose under the same leader.",
        ),
        Family("partitions", "gauge", ("cluster",), "Partitions known."),
        Family("topics", "gauge", ("cluster",), "Topics known."),
        Family("view_age_seconds", "gauge", ("cluster",), "Time since a poll was last answered."),
        Family(
            "refresh_seconds",
            "histogram",
            ("cause",),
            "How long brokers took to answer the proxy's own questions, by why they were asked.",
        ),
        Family(
            "clients_seen",
            "counter",
            ("software", "version"),
            "Links whose client said what it is (KIP-511), and was served by its broker.",
        ),
        Family(
            "clients_using_hints",
            "counter",
            ("software", "version"),
            "Of these, links whose client is known to use hints. All others are offered their "
            "broker's own versions.",
        ),
        Family(
            "faults", "counter", ("route", "kind"), "What an operator should look at; see the log."
        ),
        Family(
            "limits_reached",
            "counter",
            ("route", "limit"),
            "Connections closed or not taken for a limit of the settings; `queued_bytes` counts "
            "how often it was met.",
        ),
        Family(
            "workers",
            "gauge",
            (),
            "Worker processes that take clients; 0 with the setting workers at 1.",
        ),
        Family(
            "worker_ends",
            "counter",
            (),
            "Worker processes that ended, and were started again; see the log.",
        ),
        Family("tasks", "gauge", (), "Tasks of the event loop."),
        Family("exchanges", "gauge", (), "Requests that await their response."),
        Family("held_responses", "gauge", (), "Error responses that are held."),
        Family("kept_bytes", "gauge", (), "Bytes kept back, of limits.process_buffer_bytes."),
        Family("queued_bytes", "gauge", (), "Bytes that wait for slow readers."),
        Family("loop_stalls", "counter", (), "Times that the event loop stalled too long."),
        Family(
            "defects",
            "counter",
            ("task",),
            "Defects of the proxy itself, by the work that they ended; see the log.",
        ),
        Family("journal_written", "counter", (), "Events of the journal that were written."),
        Family(
            "journal_dropped",
            "counter",
            (),
            "Events of the journal that were dropped, since it could not be written fast enough.",
        ),
        Family(
            "topic_hints_given",
            "counter",
            ("topic", "api"),
            "As hints_given, of all routes and modes. Only with the setting metrics.topics.",
        ),
        Family(
            "topic_hints_missed",
            "counter",
            ("topic", "api", "reason"),
            "As hints_missed, of all routes and modes. Only with the setting metrics.topics.",
        ),
        Family(
            "topic_leader_moves",
            "counter",
            ("cluster", "topic"),
            "As leader_moves, by topic. Only with the setting metrics.topics.",
        ),
    )
}
