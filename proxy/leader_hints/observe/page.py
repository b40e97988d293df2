"""The status page: one HTML file that reads the status from where it came from.

Tested in ``tests/mock/test_status_page.py``.
"""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Final

_TEXT: Final = files(__package__).joinpath("page.html").read_text(encoding="utf-8")


def _hash(element: str) -> str:
    """The policy's entry for the page's only ``element`` of a kind: its hash."""
    found = re.findall(f"<{element}>(.*?)</{element}>", _TEXT, re.DOTALL)
    (text,) = found
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


PAGE: Final = _TEXT.encode()
#: Its own script and style, requests to its own server, and nothing else; in nobody's frame, so
#: that nobody is made to click there.
CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash('script')}",
        f"style-src {_hash('style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
