"""The command line.

Nouns: Layer (settings from one place), Refusal (one line that says why a setting is not taken),
CheckReport (what `leader-hints check` prints), Entrance (flags that say how brokers are entered).
"""
