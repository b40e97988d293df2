"""Scenarios: what is done to a cluster while a client runs, and what is judged then.

Tested in ``tests/mock/test_conformance.py``.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from leader_hints.conformance import traits as judged
from leader_hints.conformance.client_process import running_client
from leader_hints.conformance.traits import Trait
from leader_hints.conformance.trial import APIS, SETTLE, SLOW_METADATA, Found, Trial

#: Milliseconds of back-off that clients are asked to have: most clients' default; and so long that
#: what a busy machine adds to a retry is little beside it.
_USUAL_BACK_OFF, _LONG_BACK_OFF = 100, 1000
#: Moves, and refusals without a hint, by which a client's back-off is judged.
_ROUNDS: Final = 3
#: Seconds for which the new leader refuses connections.
_REFUSES: Final = 1.0


def _move(trial: Trial) -> list[Trait]:
    lab, topic, node = trial.lab, trial.topic, trial.nodes[1]
    with running_client(trial, _USUAL_BACK_OFF):
        trial.prepare(node)
        lab.inject("delay", apis=["Metadata"], delay_ms=SLOW_METADATA)
        since = time.monotonic()
        lab.move_leader(topic, 0, node)
        trial.recover(since)
        # It may ask for Metadata after it has recovered.
        time.sleep(SETTLE)
        return trial.judge(since, judged.of_move)


def _back_off(trial: Trial) -> list[Trait]:
    """Refuse now without a hint, now with one, so that both meet the same load of the machine."""
    lab, topic = trial.lab, trial.topic
    unhinted: list[Found] = []
    hinted: list[Found] = []
    with running_client(trial, _LONG_BACK_OFF):
        for turn in range(_ROUNDS):
            node = trial.nodes[(turn + 1) % 2]
            trial.prepare(node)
            since = time.monotonic()
            for name in trial.used():
                lab.inject("error", apis=[name], topics=[topic], times=1)
            trial.recover(since)
            unhinted.append(trial.follow(since))
            trial.rest()
            number = lab.inject("delay", apis=["Metadata"], delay_ms=SLOW_METADATA)
            since = time.monotonic()
            lab.move_leader(topic, 0, node)
            trial.recover(since)
            lab.end(number)
            hinted.append(trial.follow(since))
            trial.rest()
    return [
        trait
        for api in APIS
        if api in hinted[0]
        for trait in judged.of_back_off(
            api, [found.get(api) for found in unhinted], [found.get(api) for found in hinted]
        )
    ]


def _stale(trial: Trial) -> list[Trait]:
    return _old_hint(trial, "stale")


def _equal(trial: Trial) -> list[Trait]:
    return _old_hint(trial, "equal")


def _old_hint(trial: Trial, kind: str) -> list[Trait]:
    lab = trial.lab
    with running_client(trial, _USUAL_BACK_OFF):
        lab.inject("delay", apis=["Metadata"], delay_ms=SLOW_METADATA)
        since = time.monotonic()
        for api in ("Produce", "Fetch"):
            lab.inject("error", apis=[api], topics=[trial.topic], hint=kind, times=1)
        trial.recover(since)
        return trial.judge(
            since, lambda api, found: judged.of_old_hint(f"{kind} epoch", api, found)
        )


def _unknown_node(trial: Trial) -> list[Trait]:
    lab, node = trial.lab, trial.nodes[-1]
    lab.inject("stale_metadata", hide_nodes=[node])
    with running_client(trial, _USUAL_BACK_OFF):
        trial.prepare(node)
        # Metadata without the node would make a client forget it that has just learnt of it.
        lab.inject("delay", apis=["Metadata"], delay_ms=SLOW_METADATA)
        since = time.monotonic()
        lab.move_leader(trial.topic, 0, node)
        trial.recover(since)
        return trial.judge(since, judged.of_unknown_node)


def _refusing_leader(trial: Trial) -> list[Trait]:
    lab, node = trial.lab, trial.nodes[1]
    with running_client(trial, _USUAL_BACK_OFF):
        trial.prepare(node)
        number = lab.inject("refuse", routes=[f"broker-{node}"])
        since = time.monotonic()
        lab.move_leader(trial.topic, 0, node)
        time.sleep(_REFUSES)
        lab.end(number)
        trial.recover(since)
        return trial.judge(since, judged.of_refusing_leader)


#: By the names that they have as options of the command.
SCENARIOS: Final[Mapping[str, Callable[[Trial], list[Trait]]]] = {
    "move": _move,
    "backoff": _back_off,
    "stale": _stale,
    "equal": _equal,
    "unknown": _unknown_node,
    "refuses": _refusing_leader,
}
