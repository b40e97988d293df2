"""What can be seen from outside: events and counts as logs, metrics and a status.

Bugs about a log line, a metric, the status page or a journal's line are here. Nothing here is asked
for a decision, and nothing here does I/O but logs, and page, which is read once from the package.

- event_log: one log line for each event, a table; flood, leader_storm: what is summed up in one;
  summary: what a minute added; logs: where finished lines go.
- counts, topic_counts: what events add up to, in all and by topic; history: the last hour;
  watched: all that metrics and status read.
- metric_families: the table of all metrics; metrics: their values, for Prometheus;
  processes: what the system knows of this process and its workers;
  status: one JSON document; page: HTML that shows it (page.html).
- clients: one JSON document of the clients and the versions that they ask.
- client_names: client software as labels, within bounds that no client can break.
- journal: events as numbered lines; journal_schema: their columns, a table.
"""
