"""Errors that an operator can fix; any other exception is a bug.

Tested in ``tests/pipeline/test_store.py``.
"""


class PipelineError(Exception):
    """Says in a line what is wrong, where, and what to do."""
