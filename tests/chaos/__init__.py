"""Real brokers, real clients, and faults one after the other; nothing acknowledged may be lost.

``python -m tests.chaos`` runs the same faults, by a seed, with proxies and without them.

Nouns: Stage (a cluster, relays before and behind its proxies, and the proxies), Fault (what is done
to a stage, for a while), Crowd (producers and consumers of all client families), Arm (one run, with
proxies or without).
"""
