"""The admin server: metrics, health, status and the kill switch over HTTP.

Bugs about an HTTP request that is answered wrongly, or a wrong readiness, are here.
"""
