"""The proxy's own Metadata subscription: who is asked, when, and what wakes held responses.

Bugs about a view that is not kept fresh, or brokers that are asked too often, are here.
"""
