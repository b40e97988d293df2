"""TLS and security settings of routes: certificates, their reload, and errors in plain words.

Bugs about a certificate that is not taken, or not read again, are here.
"""
