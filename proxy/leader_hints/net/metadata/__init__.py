"""The proxy's own Metadata subscription: who is asked, when, and what wakes held responses.

Bugs about a view that is not kept fresh, or questions that are late, are here. What is asked is
decided in core/cluster (refresh_plan, poll_plan).

- refresher: polls, and asks more while responses are held; broker_answers: takes what comes of it.
- poller_set: the pollers of all routes; other_pollers: those of the brokers behind no route;
  broker_poller: one of them; pending_questions: what it is to ask next; identity_looks: when it is
  looked which node it is, as leaders moved; reconnect_pause: until it is connected to again;
  peer_address: whether its name leads elsewhere by now; upstream_states: whether routes' brokers
  answer.
- synthetic_id_survey: asks brokers whether they give synthetic topic ids.
- hold_timer: wakes held responses when the view has moved or their time is over.
"""
