"""Three questions to stored events, in words that DuckDB and Spark both understand.

Each names the part that it needs, as the pipeline does: other files need not be opened. Where
each group is small, Spark is told to move rows to where their group is, once: it would group them
first, which leaves nearly as many, and move them twice to count what is distinct. To DuckDB that
hint is a comment.
"""

from typing import Final, NamedTuple


class Query(NamedTuple):
    """``sql`` asks the view ``events``."""

    name: str
    sql: str


QUERIES: Final = (
    Query(
        "errors by client software and reason",
        """
        SELECT software, software_version, api, topic, coalesce(reason, '') AS why,
            count(*) AS errors, sum(hold_ms) AS held
        FROM events WHERE part = 'encounter' AND event = 'error' GROUP BY ALL
        """,
    ),
    Query(
        "leader moves and who saw them",
        """
        SELECT cluster, topic, partition, epoch, count(DISTINCT sidecar) AS sidecars,
            unix_micros(min(time)) AS first_seen, unix_micros(max(time)) AS last_seen
        FROM (
            SELECT /*+ REPARTITION(partition, epoch) */
                cluster, topic, partition, epoch, sidecar, time
            FROM events WHERE part = 'move' AND event = 'leader_change'
        ) GROUP BY ALL
        """,
    ),
    Query(
        "first success after each error",
        """
        SELECT software, api, count(*) AS errors, count(next_at) AS followed FROM (
            SELECT software, api, event, lead(time) OVER (
                PARTITION BY cluster, client_id, api, topic, partition ORDER BY time, run, seq
            ) AS next_at
            FROM events WHERE part = 'encounter'
        ) WHERE event = 'error' GROUP BY ALL
        """,
    ),
)
