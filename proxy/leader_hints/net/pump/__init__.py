"""The pump: one task that moves the bytes of all links.

Bugs about throughput, back-pressure, endings of connections, bytes that are lost then, and the CPU
are here.

- pump: the task; poller: which sockets are ready; pipe: from socket to socket within the system.
- tls_socket: a socket that speaks TLS.
"""
