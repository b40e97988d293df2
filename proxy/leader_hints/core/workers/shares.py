"""Which part of a limit each worker has, where it cannot be counted for all of them together."""


def share(total: int, workers: int, least: int = 1) -> int:
    """Return one worker's part of ``total``, rounded up so that all parts are no less; at least
    ``least``.
    """
    return max(-(-total // workers), least)
