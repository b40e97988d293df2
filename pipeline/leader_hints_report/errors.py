"""What an operator may meet and mend; anything else that is raised is a bug."""


class PipelineError(Exception):
    """Says in a line what is wrong, where, and what to do."""
