"""Clients for `leader-hints conformance`: each uses partition 0 of a topic for ever."""
