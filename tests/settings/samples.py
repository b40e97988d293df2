"""Settings for the tests of this folder."""

from typing import Any, Final

from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings

ROUTE: Final = {"listen": "127.0.0.1:19092", "upstream": "broker-1:9092"}


def route(listen: str, upstream: str, **others: str) -> RouteSettings:
    """Return a route's settings from texts."""
    return RouteSettings.model_validate({"listen": listen, "upstream": upstream, **others})


def settings_of(**values: Any) -> Settings:
    """Return settings with one route, and ``values`` in addition or in its place."""
    return Settings.model_validate({"routes": [ROUTE], **values})
