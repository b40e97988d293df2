"""The errors of this package. Each class says who is at fault; anything else raised is a bug."""

import traceback


class LeaderHintsError(Exception):
    """Base of every error that this package raises on purpose.

    Its text is one clear line for a person: commands print it without a traceback.

    Attributes:
        exit_code: what a command ends with when it cannot go on because of this error.
    """

    exit_code = 1


class ConfigurationError(LeaderHintsError):
    """The operator is at fault: a setting is missing, unknown, or not allowed.

    Attributes:
        problems: one line for each problem that was found; at least one.
    """

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ListenError(LeaderHintsError):
    """The machine or the operator is at fault: an address cannot be listened on."""


class TakeoverError(LeaderHintsError):
    """The other process of a takeover is at fault, or who started the two."""


class BrokerError(LeaderHintsError):
    """A broker is at fault: it is out of reach, does not answer, or breaks the protocol."""


class LoginError(LeaderHintsError):
    """A KDC or token endpoint is at fault: it is out of reach, or does not know the proxy."""


def places_of(error: BaseException) -> str:
    """Return where an error came from and of what kind it is; no value, as that may be a secret.

    Of a group, as nurseries raise them, each of its errors follows.
    """
    places = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    if not isinstance(error, BaseExceptionGroup):
        return places
    return "\n".join((places, *map(places_of, error.exceptions)))
