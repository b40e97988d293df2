"""What the process that decides and its worker processes say to each other; pure.

Bugs about a worker that knows something else than the process that decides are here, if it was said
wrongly; what each of them does about it is in net/workers.

- messages: all that is said; codec: its bytes. Both processes run the same program, so there are
  no versions.
- awaited: which successes of clients a worker tells.
- shares: which part of a limit each worker has.
"""
