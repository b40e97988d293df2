"""The proxy's own Metadata subscription: who is asked, when, and what wakes held responses.

Bugs about a view that is not kept fresh, or questions to brokers that are too many, too few or too
late, are here; core/cluster has their limits.

- refresher: all brokers of all clusters; broker_poller: one of them.
- hold_timer: wakes held responses when the view has moved or their time is over.
- time_slices: has large answers read in turns.
"""
