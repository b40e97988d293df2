"""Settings in the form in which the parts take them.

Tested in ``tests/app/test_process.py``.
"""

import time
from importlib.metadata import version
from typing import Final

import structlog

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.versions.client_capabilities import OWN_NAME
from leader_hints.net.metadata.broker_poller import PollerSettings
from leader_hints.net.pump.limits import PumpLimits
from leader_hints.observe.event_log import EventLog
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.limits import LimitSettings
from leader_hints.settings.log import LogSettings
from leader_hints.settings.settings import Settings

DISTRIBUTION: Final = "kafka-leader-hints"


def pump_limits(limits: LimitSettings) -> PumpLimits:
    """Return what links may use."""
    return PumpLimits(
        request_bytes=limits.request_bytes,
        requests_in_flight=limits.requests_in_flight,
        queued_bytes=limits.queued_bytes,
        first_bytes=limits.first_bytes,
        idle=limits.idle,
        linger=limits.linger,
    )


def hold_rules(settings: HoldSettings, most: int) -> HoldRules:
    """Return how long responses are held; ``most``: at the same time."""
    return HoldRules(
        deadline=settings.deadline,
        link_second=settings.link_per_second,
        kraft=settings.kraft,
        shared=settings.shared_response,
        grace=settings.grace,
        confirm=settings.confirm,
        most=most,
    )


def poller_settings(settings: Settings) -> PollerSettings:
    """Return how brokers are asked."""
    asking = settings.subscription
    return PollerSettings(
        client=own_software(),
        poll=asking.poll_interval,
        answer=asking.answer_timeout,
        connect=settings.connect_timeout,
        reconnect_min=asking.reconnect_min,
        reconnect_max=asking.reconnect_max,
        slice_partitions=asking.slice_partitions,
        in_sync=settings.closest_replica != "off",
    )


def make_log(settings: LogSettings) -> EventLog:
    """Return the log of events."""
    levels, most = settings.by_subsystem, settings.moves_per_second
    return EventLog(structlog.get_logger(), levels, most, time.monotonic)


def own_software() -> ClientSoftware:
    """Return what the process calls itself in requests to brokers."""
    return ClientSoftware(OWN_NAME, version(DISTRIBUTION))
