"""Bytes and values of the Kafka protocol and of X.509, pure and without knowledge of any API.

Nouns:

- Reader: a position in a buffer from which primitive types are read.
- Varint: an unsigned variable-length integer, as compact lengths and tags use it (KIP-482).
- Tag section: the tagged fields at the end of a flexible structure (KIP-482).
- X509: when a certificate expires.
- Splice: a stretch of a frame that is replaced; a frame is rewritten by its splices.
"""
