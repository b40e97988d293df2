"""Consumers that read in their rack, while leaders move, followers stop, and replicas leave.

Bugs of this proof are here; of what is named to whom, in ``core/replicas``.

- crowd: producers and consumers of all libraries that can name a rack.
- trouble: what is done to the brokers meanwhile.
"""
