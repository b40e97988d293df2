"""A new process takes the listening sockets over from the one that serves.

Bugs about connections that are refused, or are nobody's, while one process replaces another are
here; what each of them does then is in app/process.

- messages: what the two say to each other, and the sockets that go beside it.
- listening_sockets: those of a process, its own or handed over.
- predecessor: the process that serves, as the new one sees it; successors: the other way round.
- service_manager: tells systemd which process serves.
"""
