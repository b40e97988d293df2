"""Clients until they are joined to a broker.

Bugs about a client that is let in or refused wrongly are here.

- listening: listeners and accept; handshake: what a client passes before it is joined to a broker.
- preamble: PROXY header (its bytes are read in wire/proxy_header) and TLS handshake.
- reset: how a client is turned away so that it tries again.
"""
