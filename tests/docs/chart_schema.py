"""What Helm's chart allows as routes: the settings' own model, so that the two cannot differ.

Only the ports must be numbers in the chart: they become the container's.
"""

import json
from pathlib import Path
from typing import Any, Final

from leader_hints.settings.route import RouteSettings
from tests.harness.maven import ROOT

CHART_SCHEMA: Final = ROOT / "deploy" / "helm" / "leader-hints" / "values.schema.json"
_LISTEN: Final = {"type": "string", "pattern": ":[0-9]{1,5}$"}


def page() -> tuple[Path, str]:
    """The chart's schema of values, with the parts that are the settings'."""
    values: dict[str, Any] = json.loads(CHART_SCHEMA.read_text(encoding="utf-8"))
    route = RouteSettings.model_json_schema()
    values["$defs"] = route.pop("$defs")
    route["properties"]["listen"] = _LISTEN
    values["properties"]["routes"]["items"] = route
    return CHART_SCHEMA, json.dumps(_short(values), indent=2) + "\n"


def _short(schema: Any) -> Any:
    """Without what only people read: the settings' reference has it."""
    if isinstance(schema, dict):
        left = ("description", "title", "default", "writeOnly")
        # A property may have any name, such as one of these.
        return {
            key: {name: _short(of) for name, of in value.items()}
            if key == "properties"
            else _short(value)
            for key, value in schema.items()
            if key not in left
        }
    return [*map(_short, schema)] if isinstance(schema, list) else schema
