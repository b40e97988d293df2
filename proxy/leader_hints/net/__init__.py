"""Sockets and tasks, on Trio. Nothing here decides what a hint is.

- pump: moves the bytes of all links; clients, brokers: connections until they are joined to a link.
- metadata: keeps the leader view fresh and wakes held responses; tls: certificates and security.
- journal: writes the journal; admin: metrics, health, status and the kill switch.
- watchdog: notices when the event loop stalls; departure: leaves after the broker; descriptors: how
  many connections the system allows.
"""
