"""The pump: one task that moves the bytes of all links.

Bugs about throughput, back-pressure, endings of connections, bytes that are lost then, and the CPU
are here.

- pump: the task; turns: for how long it serves sockets before other tasks.
- relay: what is done when a socket is ready; reports: what links report, and to whom.
- lookahead: bytes that are looked at while they stay in a socket's receive buffer.
- endings: how links end, and what is still delivered; link_times: which have taken too long.
- send_queues: sending, and back-pressure; pipe: from socket to socket within the system.
- socket_pair: a link's two sockets; watched_sides, poller: which of them are ready.
- tls_socket: a socket that speaks TLS; limits: what links may take up.
- holds: who decides about their error responses.
"""
