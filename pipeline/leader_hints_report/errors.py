"""Errors that an operator can fix; any other exception is a bug."""


class PipelineError(Exception):
    """Says in a line what is wrong, where, and what to do."""
