"""Errors that an operator can fix; any other exception is a bug.

Tested in ``tests/pipeline/store/test_folder.py``.
"""


class PipelineError(Exception):
    """Says in a line what is wrong, where, and what to do."""
