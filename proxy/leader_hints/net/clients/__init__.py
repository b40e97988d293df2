"""Clients until they are joined to a broker: listening, PROXY headers, TLS handshakes.

Bugs about a client that is let in or refused wrongly are here.
"""
