"""Which hint an error response gets, and how long it waits for it.

Bugs about a missing or wrong hint, or a hold that is too long, are here; the task that wakes held
responses is net/metadata/hold_timer.

- hint_rules: which hint is good, as a table; hint_judge applies it to responses, in slices.
- hold_queue: the error responses that wait, and the rules of holds. hold_rules: their bounds;
  hold_allowance: how long a response may be held; hold_deadlines: when each is to be looked at.
- review_queue: which response is reviewed next; sought_leaders: of responses that went on without.
- held_response, failed_partition: what is known of each. held_index: which of them news is about.
  own_answers: what their broker has answered since.
- wanted_leaders: what held responses wait for, and the questions that would find it.
- hold_report: hints given and missed, in slices; miss_reason: why an error got no hint.
- scheduling_delay: how late the event loop runs.
- recovery: when a client that met an error is served again.
"""
