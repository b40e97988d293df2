"""Sockets and tasks, on Trio. Nothing here decides what a hint is.

Bugs about a loop that stalls, or a process that leaves too early, are in this folder itself:

- watchdog: notices when the event loop stalls; departure: when a proxy may leave after its broker.
- descriptors: raises their limit; time_slices: does long work while links are served.
- child_process: when a process that was started has ended.

Its folders: pump (bytes of all links), clients and brokers (connections until they are joined),
metadata (keeps the leader view fresh), takeover (from process to process), workers (processes that
serve links for this one), tls, journal, admin.
"""
