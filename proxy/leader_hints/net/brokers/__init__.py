"""Connections to brokers: TCP, TLS, SASL, and the proxy's own requests.

Bugs about a broker that cannot be reached or authenticated with are here.
"""
