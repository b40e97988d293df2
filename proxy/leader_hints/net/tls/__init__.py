"""TLS and security settings of routes.

Bugs about a certificate that is not taken, or not read again, are here.

- handshake_turns: one step of all handshakes at a time, and who goes first.
- certificates: files and the TLS context made of them; route_security: those of all routes.
- tls_errors: what went wrong with TLS, in words that say who is at fault.
"""
