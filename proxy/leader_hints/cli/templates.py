"""Templates: texts in which `${NAME}` stands for an environment variable.

A DaemonSet's pods share one configuration, but each has a node of its own, so the file says
`${NODE_IP}:9092` and the pod's environment says which node.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ONLY_PORT: Final = re.compile(r":[^:]*")


def expand(template: str, environment: Mapping[str, str]) -> str:
    """Put variables' values into a text; `$` can stand for nothing else.

    A value that is an IPv6 address gets its brackets where it is the whole host of HOST:PORT.

    Raises:
        ValueError: a variable is not set or empty, or a `$` begins no `${NAME}`.
    """
    if "$" in _REFERENCE.sub("", template):
        raise ValueError("a $ must begin the name of an environment variable, such as ${NODE_IP}")

    def value_of(reference: re.Match[str]) -> str:
        value = environment.get(reference[1], "")
        if not value:
            raise ValueError(f"the environment variable {reference[1]} is not set, or empty")
        is_host = reference.start() == 0 and _ONLY_PORT.fullmatch(template, reference.end())
        return f"[{value}]" if is_host and _is_ipv6(value) else value

    return _REFERENCE.sub(value_of, template)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
