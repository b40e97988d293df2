"""Worker processes: they move the bytes of links, and one process decides.

Bugs about links of several workers that are served differently, a worker that hangs or dies, and
figures of workers that are lost or counted twice are here.

- channel: messages between two processes; their kinds are in core/workers.
- In a worker: worker_side joins what it has in place of the parts that decide. relayed_holds: has
  responses judged; waiting_events: what it reports lets errors go first; told_state: what it knows
  of brokers and topics; traffic_reports: counts.
- In the process that decides: parent_side takes what workers say. judged_holds: judges their
  responses; decisions: sends them what comes of that; telling: what all workers get to know;
  worker_links: which worker has which link, and gets the next; worker_counts: adds up what they
  count; worker_pool: starts the processes, and starts those again that end.
"""
