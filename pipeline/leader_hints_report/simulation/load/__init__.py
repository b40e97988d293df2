"""How many requests brokers get of clients and proxies.

Bugs about the load that a forecast has on brokers are here.

- requests: requests by broker and second.
- proxy_questions: what proxies ask brokers, by the proxy's own plans.
"""
