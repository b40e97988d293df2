"""Fetch sessions (KIP-227), and Fetch by topic id in front of brokers that know names only.

Bugs about epochs or topics that a session remembers wrongly are here.
"""
