"""Bytes and values of the Kafka protocol, pure and without knowledge of any API.

Nouns:

- Reader: a position in a buffer from which primitive types are read.
- Varint: an unsigned variable-length integer, as compact lengths and tags use it (KIP-482).
- Tag section: the tagged fields at the end of a flexible structure (KIP-482).
- Splice: a stretch of a frame that is replaced; a frame is rewritten by its splices.
"""
