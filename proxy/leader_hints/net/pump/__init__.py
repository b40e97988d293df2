"""The pump: one task that moves the bytes of all links.

Bugs about throughput, back-pressure, endings of connections and the CPU are here.
"""
