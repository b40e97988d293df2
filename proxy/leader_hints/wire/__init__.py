"""Bytes and values of the Kafka protocol, PROXY headers, TLS and X.509; pure, without any API.

Bugs about primitive types are here.

- reader, writer: primitive types; varint, tags: compact lengths and tagged fields (KIP-482).
- splice: a stretch of a frame that is replaced; scatter, recode: a frame in a new encoding.
- proxy_header: PROXY protocol, versions 1 and 2; client_hello: what a TLS client's first message
  costs; x509: when a certificate expires.
- steps: long work in steps.
- errors: bytes that are cut off or malformed.
"""
