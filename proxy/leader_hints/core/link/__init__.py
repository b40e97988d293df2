"""One client connection joined to its own connection to the broker, as a byte machine.

Bugs about messages that are changed, kept back or not understood are here. How bytes are moved, and
how connections end, is net/pump.

- link, link_state: both directions and what they share; flow: one direction.
- requests, responses: what is done with each message; exchange: a request that awaits its response.
- held: an error response that waits; passthrough_scan: what is read of a response in passing.
- budget: bytes that may be kept; traffic_counters, latency_sampler: what is counted and timed.
"""
