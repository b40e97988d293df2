"""The process of a client, which its user's own command starts.

Tested in ``tests/mock/test_conformance.py``.
"""

import os
import signal
import subprocess  # the command is the one that its user gave  # nosec B404
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from leader_hints.conformance.trial import LOOK, Trial
from leader_hints.errors import ConfigurationError, LeaderHintsError

#: Seconds for a client to start and work, and to end.
_START, _END = 60.0, 10.0


class ClientFailedError(LeaderHintsError):
    """The client ended by itself, or never produced or consumed."""


@contextmanager
def running_client(trial: Trial, back_off: int) -> Iterator[None]:
    """Run the client while the block is; it works when the block begins.

    ``back_off``: milliseconds that the client is asked to have.

    :raises ClientFailedError: it does not.
    """
    command = trial.command
    places = {"bootstrap": trial.lab.bootstrap, "topic": trial.topic, "backoff_ms": f"{back_off}"}
    arguments = [_filled(argument, places) for argument in command]
    variables = {f"KAFKA_{name.upper()}": value for name, value in places.items()}
    environment = {**os.environ, **variables}
    try:
        process = subprocess.Popen(  # no shell, and the user's own command  # nosec B603
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigurationError(f"cannot run {command[0]}: {error.strerror}") from None
    try:
        end = time.monotonic() + _START
        while not (works := trial.works()) or not works >= trial.apis:
            if process.poll() is not None:
                raise ClientFailedError(f"the client ended with {process.returncode}")
            if time.monotonic() > end:
                lacking = " and ".join(sorted(trial.apis - works)) or "Produce or Fetch"
                raise ClientFailedError(
                    f"{lacking} of the client did not work for partition 0 of topic {trial.topic} "
                    f"within {_START:g} s"
                )
            time.sleep(LOOK)
        # Let it settle: what it does at its start is not what is looked for.
        time.sleep(1)
        yield
    finally:
        _end(process)


def _filled(argument: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its whole session: the command may be a shell with the client below it.
    for way in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, way)
            process.wait(_END)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            process.wait()
        return
