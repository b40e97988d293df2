"""A worker process of `run`, which starts it with the setting `workers`; no command of its own.

Tested in ``tests/app/workers/test_front.py``.
"""

import sys


def main() -> None:
    """Serve by what is said on the descriptor whose number is the only argument."""
    from leader_hints.app.workers.worker import run

    run(int(sys.argv[1]))


if __name__ == "__main__":
    main()
