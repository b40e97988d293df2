"""Worker processes, composed: what `workers` above 1 adds to a process.

Bugs about how workers begin and end, and about what of the process they share, are here.

- front: the workers as the process that decides has them; worker: one worker process.
- cores: how many workers `auto` means.
"""
