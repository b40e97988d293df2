"""Settings: everything that an operator can set, with its default, its bounds and its meaning.

Bugs about a setting that is refused, or accepted, wrongly are here; ``cli.sources`` gathers the
values. ``leader-hints config schema`` prints the descriptions: they are the reference. Units are in
the names: ``_ms`` are milliseconds, ``_bytes`` are bytes. The program reads times in seconds, from
properties without ``_ms``. Each default is in this folder alone.

- ``settings``: all of them, and the rules that involve more than one route.
- ``route``, with ``tls`` and ``sasl``: a listening address and the broker behind it.
- ``clients``: which clients use hints, beyond what is built in.
- ``racks``: in which rack each broker is.
- ``limits``, ``hold``, ``subscription``: what is bounded, how long errors wait, what is asked.
- ``log``, ``metrics``, ``journal``: what is reported.
- ``local``: the virtual cluster of ``leader-hints local``.
- ``fields``: what the groups share.
"""
