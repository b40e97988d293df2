"""Thousands of connections through one proxy process, which must keep nothing of them.

``python -m tests.soak``. Brokers and clients are made up, so that they cost less than the proxy.

Nouns: Pair (two brokers between which a leader moves all the time), Client (one connection at a
time, which checks each response), Watch (what is pending in the proxy by its own counts).
"""
