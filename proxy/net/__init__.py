"""Sockets and tasks: the only package that imports Trio.

Nouns:

- Pump: moves the bytes of all links, in one task that polls all their sockets.
- Pipe: moves bytes from socket to socket within the system; Pipes: those that links share.
- Poller: which sockets are ready, told at the least cost that the system allows.
- HoldKeeper: wakes held responses when the view has moved or their time is over.
- KeepingPoller: the same, of sockets that keep decrypted bytes back.
- TlsSocket: a socket that speaks TLS, for the pump. TlsFiles: the certificates that it shows.
- Gate: what a client passes before it is joined to a broker; Greeting: what is read there.
- Door: how a broker is entered; Credentials: what the proxy authenticates with there.
- Security: the gates and doors of all routes.
- BrokerStream: a TCP stream to a broker, opened in bounded time.
- BrokerConnection: a connection of the proxy's own to a broker, one request at a time.
- Peer: one broker that is asked for Metadata, over and over; Subscription: all of them.
- Turns: in which several tasks work on large things, one after the other.
- Admin: the HTTP server; AdminPages: what it has at which path; admin_guard: whom it refuses.
- Readiness: whether each route can serve clients now.
- JournalWriter: hands the journal's lines on, many at a time, and never waits for it.
- FileSink, KafkaSink: where those lines go, files or a topic; they block, in a worker thread.
- Doctor: gathers the facts for a checkup. Encounter: who answers at an address; Arrivals: which
  connections come out at an address; Machine: what this machine says of itself.
- VirtualCluster: the listeners of `local`, one for each broker; discovery finds the first ones.
- Interposer: stands before a link where faults are allowed; FaultStage: all that is for them;
  FaultPages: what the admin server has for them; WireRecorder: writes down what passes.
- reset: how a client that cannot be served is turned away.
- Lab: a virtual cluster in a thread, for tests. StandingCluster: a real one for it, whose leaders
  are moved.
- App: everything together, from the first listener to the last.
"""
