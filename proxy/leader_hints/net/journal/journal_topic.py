"""The journal as a Kafka topic.

Its client is librdkafka's idempotent producer, so that no line is doubled or put out of order by
its retries. What is delivered twice all the same, after a fatal error, has the same run and number.
"""

import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from leader_hints.errors import BrokerError, ConfigurationError
from leader_hints.net.journal.sink import LinesLostError

#: Seconds that a write waits for the brokers' word.
_PATIENCE: Final = 5.0
_NOT_YET: Final = "no broker has acknowledged it yet"
#: Lines that are produced at once, as long as no broker finds them too large together.
_AT_ONCE: Final = 1_000_000
#: After so many parts that were taken twice as many lines are tried: those that were too large
#: together may have been few, and a topic's limit may be raised. An attempt costs a round trip.
_TRIED_AFTER: Final = 8
#: What the journal sets itself.
_OURS: Final = frozenset(
    {
        "bootstrap.servers",
        "metadata.broker.list",
        "client.id",
        "enable.idempotence",
        "acks",
        "request.required.acks",
        "message.timeout.ms",
        "delivery.timeout.ms",
    }
)
_NOWHERE: Final = logging.Logger("librdkafka")
_NOWHERE.addHandler(logging.NullHandler())
_HIDDEN: Final = "***"
#: Letters of a value, or of a part of one, that are not shown. Fewer are no secret.
_LEAST_HIDDEN: Final = 4
#: Between the parts of a value.
_BETWEEN: Final = re.compile(r"[\s,]+")


class KafkaSink:
    """Writes lines as records of ``topic``, keyed by ``key``: one sidecar's share a partition.

    ``properties``: librdkafka's, which come after the journal's own, from :func:`read_properties`.

    :raises ConfigurationError: librdkafka does not take the properties.
    """

    def __init__(
        self, bootstrap: str, topic: str, client_id: str, key: str, properties: Mapping[str, str]
    ) -> None:
        self._topic = topic
        self._key = key.encode()
        self._hidden = _hidden_texts(properties.values())
        self._settings: dict[str, object] = {
            "compression.type": "zstd",
            "linger.ms": 20,
            # Its own lines on standard error would not be of our log's form; it has fatal ones at
            # any level.
            "log_level": 0,
            "logger": _NOWHERE,
            **properties,
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "enable.idempotence": True,
            # For ever: a line is given up by nobody but the journal's writer.
            "message.timeout.ms": 0,
            "error_cb": self.erred,
        }
        self._fatal = False
        self._problem = _NOT_YET
        self._try_at_once(_AT_ONCE)
        self._batch: _Batch | None = None
        self._producer = self._open()

    def write(self, lines: Sequence[bytes]) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`. What the brokers have not
        acknowledged stays with librdkafka, and a second call waits for it.

        librdkafka does not know the topic's ``max.message.bytes``, which counts for what it sends
        at once, and sends the same again. So lines that a broker finds too large together are
        produced in halves, each when the one before is acknowledged, and fewer at once from then
        on; twice as many are tried now and then.

        :raises BrokerError: not all is acknowledged yet.
        :raises LinesLostError: a line is too large by itself.
        """
        if self._fatal:
            # Nobody knows what it delivered: all goes again, through a new one.
            self._producer, self._batch, self._fatal = self._open(), None, False
        batch = self._batch = self._batch or _Batch(lines)
        while self._advance(batch):
            pass
        if self._fatal or batch.unsent or batch.awaited:
            raise BrokerError(self._problem)
        self._batch, self._problem = None, _NOT_YET

    def close(self) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`."""
        self._flush()

    def _flush(self) -> None:
        """Wait for the brokers' word.

        confluent-kafka raises fatal errors here, as a KafkaError, which is no exception at all: a
        thread that does not catch it ends without a word. What is called back meanwhile fails
        with SystemError, so nobody knows what was delivered.
        """
        problem: object = None
        try:
            self._producer.flush(_PATIENCE)
        except:  # noqa: E722 - see above
            problem = sys.exc_info()[1]
        if problem is not None:
            self._fatal = True
            of = problem.args[0] if isinstance(problem, KafkaException) else problem
            if isinstance(of, KafkaError):
                self._problem = self._without_values(of.str())

    def _open(self) -> Producer:
        try:
            return Producer(self._settings)
        except KafkaException as error:
            text = self._without_values(error.args[0].str().strip())
            raise ConfigurationError(f"journal.properties_file: {text}") from None
        except (TypeError, ValueError, AttributeError) as error:
            # Of properties that are for programs, such as stats_cb.
            text = f"a property is none that can be set in a file: {error}"
            raise ConfigurationError(f"journal.properties_file: {text}") from None

    def _advance(self, batch: "_Batch") -> bool:
        """Produce some lines, and wait for the brokers' word; return whether there are more to try.

        :raises LinesLostError: a line is too large by itself.
        """
        if not batch.awaited:
            self._produce(batch)
        self._flush()
        if self._fatal or batch.awaited:
            return False
        failed, batch.failed = batch.failed, []
        batch.unsent[:0] = failed
        if not batch.too_large:
            if not failed and batch.produced == self._at_once:
                self._taken += 1
            if self._taken == _TRIED_AFTER:
                self._try_at_once(2 * self._at_once)
            return bool(batch.unsent) and not failed
        if batch.produced > 1:
            self._try_at_once(batch.produced // 2)
            return True
        # It came back first, and is taken no more.
        self._try_at_once(_AT_ONCE)
        line = batch.unsent.pop(0)
        raise LinesLostError(self._problem, line, line)

    def _try_at_once(self, lines: int) -> None:
        self._at_once, self._taken = min(lines, _AT_ONCE), 0

    def _produce(self, batch: "_Batch") -> None:
        some = batch.unsent[: self._at_once]
        batch.produced, batch.too_large = len(some), False
        del batch.unsent[: len(some)]
        for line in some:
            try:
                self._producer.produce(
                    self._topic, line, self._key, on_delivery=partial(self._delivered, batch, line)
                )
            except BufferError as error:
                self._problem = str(error)
                batch.failed.append(line)
            except KafkaException as error:
                batch.fail(line, error.args[0])
                self._problem = self._without_values(str(error))
                self._fatal = self._fatal or error.args[0].code() == KafkaError._FATAL
            else:
                batch.awaited += 1

    def _delivered(
        self, batch: "_Batch", line: bytes, error: KafkaError | None, _: Message
    ) -> None:
        batch.awaited -= 1
        if error is not None:
            self.erred(error)
            batch.fail(line, error)

    def erred(self, error: KafkaError) -> None:
        """Take librdkafka's word that something is wrong, as it calls back."""
        self._problem = self._without_values(error.str())
        self._fatal = self._fatal or error.fatal()

    def _without_values(self, text: str) -> str:
        """Return librdkafka's words without any value: it may be a secret, at its place or not.

        It quotes values in many ways, or what is left of one from some part on, and cuts texts.
        """
        for value in self._hidden:
            text = text.replace(value, _HIDDEN)
            for size in range(min(len(value), len(text)), _LEAST_HIDDEN - 1, -1):
                if text.endswith(value[:size]):
                    text = text[:-size] + _HIDDEN
                    break
        return text


def _hidden_texts(values: Iterable[str]) -> list[str]:
    """Return values and their parts, the longest first."""
    texts = {text for value in values for text in (value, *_BETWEEN.split(value))}
    return sorted((text for text in texts if len(text) >= _LEAST_HIDDEN), key=len, reverse=True)


class _Batch:
    """Lines that are not acknowledged: ``unsent`` are to be produced, others ``awaited``.

    ``produced``: how many were produced last; ``failed``: those of them that were not taken;
    ``too_large``: a broker said so of some of them.
    """

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.unsent = list(lines)
        self.awaited = 0
        self.produced = 0
        self.failed: list[bytes] = []
        self.too_large = False

    def fail(self, line: bytes, error: KafkaError) -> None:
        """Take it that a line was not taken."""
        self.failed.append(line)
        self.too_large |= error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def read_properties(file: Path) -> dict[str, str]:
    """Read librdkafka properties, ``name=value`` lines; empty lines and those with # are comments.

    :raises ConfigurationError: the file cannot be read, a line is none, or a property is not to be
        set. No value is ever in the message: it may be a secret.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"journal.properties_file: cannot read {file}: {reason}") from None
    properties: dict[str, str] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        place = f"journal.properties_file: {file}, line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not (name and equals):
            problems.append(f"{place}: it is no NAME=VALUE")
        elif name in _OURS:
            problems.append(f"{place}: {name} is set by the journal; remove the line")
        elif name == "transactional.id":
            problems.append(f"{place}: the journal has no transactions; remove the line")
        elif name in properties:
            problems.append(f"{place}: {name} stands twice")
        properties[name] = value
    if problems:
        raise ConfigurationError(*problems)
    return properties
