"""The bounds of holds by the settings' defaults."""

from leader_hints.app.part_settings import hold_rules
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.limits import LimitSettings

DEFAULT_RULES = hold_rules(HoldSettings(), LimitSettings().held_responses)
