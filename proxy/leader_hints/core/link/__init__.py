"""One client connection joined to its own connection to the broker, as a byte machine.

Bugs about messages that are lost, kept back, out of order or not understood, and about requests,
are here. What is done with a single response is in core/responses. How bytes are moved, and how
connections end, is in net/pump.

- link: both directions; flow: one direction, gathered_frame: a frame that it keeps,
  ahead: what it is to look at without receiving it.
- request_flow, response_flow: the messages of each direction; recoding_turns: whose large request
  is recoded next.
- link_state: what both share: client, its topic_ids, request_policies (what is done with each
  kind of request), exchanges.
- exchange: a request that awaits its response; held: an error response that waits for its hints.
- budget: bytes that may be kept; frame_memory: what large frames are gathered into.
- traffic_counters, latency_sampler: what is counted and timed.
"""
