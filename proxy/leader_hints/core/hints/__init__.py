"""Which hint an error response gets, and how long it waits for it.

Bugs about a missing or wrong hint, or a hold that is too long, are here; the task that wakes held
responses is net/metadata/hold_timer.

- hold_queue: the error responses that wait, and the rules of hints and holds.
- miss_reason: why an error got no hint; scheduling_delay: how late the event loop runs.
- recovery: when a client that met an error is served again.
"""
