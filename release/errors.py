"""What stops a release."""


class ReleaseError(Exception):
    """Says in a line what is wrong."""
