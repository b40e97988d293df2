"""EmbeddedCluster: librdkafka's mock cluster, driven through ctypes.

Use it only in a process that may crash (see leader_hints.mock.child). The functions bound here are
those of librdkafka's rdkafka_mock.h; none is part of its stable API, so every one that is missing
is reported by name.

Tested in ``tests/mock/test_cluster.py``.
"""

import ctypes
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int16, c_int32, c_size_t, c_void_p

from confluent_kafka import cimpl

API_KEYS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "FindCoordinator": 10,
    "ApiVersions": 18,
    "InitProducerId": 22,
    "OffsetForLeaderEpoch": 23,
}
"""Kafka API name -> API key, for the APIs that callers cap or count here."""

Leader = tuple[int, int]
"""A partition's leader: node id and epoch."""

_API_NAMES = {key: name for name, key in API_KEYS.items()}

_PRODUCER = 0  # rd_kafka_type_t
_ERROR_TEXT_BYTES = 512
_LOG_ERRORS_ONLY = b"3"  # A syslog level; at lower ones librdkafka warns of having no broker.
_STALE_ANSWERS = 16  # More than the clients and a proxy ask for while Metadata lags a move.

# The mock's thread serves its queue of calls and then clears its wake-up pipe, so a call that
# comes between the two lies there until other traffic, or a second, has passed. Calls in quick
# succession hit that gap; this pause lets the thread go back to its poll first.
_SECONDS_BETWEEN_CALLS = 0.0005

# Function -> (result type, argument types). Every pointer must be declared: ctypes would cut an
# undeclared one to 32 bits.
_FUNCTIONS: Mapping[str, tuple[type | None, tuple[type, ...]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_err2str": (c_char_p, (c_int,)),
    "rd_kafka_mock_cluster_new": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_mock_cluster_destroy": (None, (c_void_p,)),
    "rd_kafka_mock_cluster_bootstraps": (c_char_p, (c_void_p,)),
    "rd_kafka_mock_set_apiversion": (c_int, (c_void_p, c_int16, c_int16, c_int16)),
    "rd_kafka_mock_topic_create": (c_int, (c_void_p, c_char_p, c_int, c_int)),
    "rd_kafka_mock_partition_set_leader": (c_int, (c_void_p, c_char_p, c_int32, c_int32)),
    "rd_kafka_mock_partition_push_leader_response": (
        c_int,
        (c_void_p, c_char_p, c_int, c_int32, c_int32),
    ),
    "rd_kafka_mock_broker_set_down": (c_int, (c_void_p, c_int32)),
    "rd_kafka_mock_broker_set_up": (c_int, (c_void_p, c_int32)),
    "rd_kafka_mock_broker_set_host_port": (None, (c_void_p, c_int32, c_char_p, c_int)),
    "rd_kafka_mock_start_request_tracking": (None, (c_void_p,)),
    "rd_kafka_mock_get_requests": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_mock_request_api_key": (c_int16, (c_void_p,)),
    "rd_kafka_mock_request_destroy_array": (None, (POINTER(c_void_p), c_size_t)),
}


class EmbeddedError(Exception):
    """librdkafka refused a call, or lacks a function that is needed."""


class EmbeddedCluster:
    """A running mock cluster whose brokers listen on ports of 127.0.0.1 picked by the system."""

    def __init__(self, brokers: int) -> None:
        """Start `brokers` brokers, with node ids from 1 on.

        Raises EmbeddedError if librdkafka cannot start them.
        """
        self._lib = _load_library()
        text = ctypes.create_string_buffer(_ERROR_TEXT_BYTES)
        conf = self._lib.rd_kafka_conf_new()
        self._lib.rd_kafka_conf_set(conf, b"log_level", _LOG_ERRORS_ONLY, text, _ERROR_TEXT_BYTES)
        self._client = self._lib.rd_kafka_new(_PRODUCER, conf, text, _ERROR_TEXT_BYTES)
        if not self._client:
            raise EmbeddedError(f"rd_kafka_new: {text.value.decode()}")
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, brokers)
        if not self._cluster:
            self._lib.rd_kafka_destroy(self._client)
            raise EmbeddedError(f"librdkafka could not start {brokers} mock brokers")
        self._lib.rd_kafka_mock_start_request_tracking(self._cluster)
        self._brokers = brokers
        self._leaders: dict[tuple[str, int], Leader] = {}
        self._lag: threading.Timer | None = None

    def addresses(self) -> dict[int, tuple[str, int]]:
        """Node id -> the host and port at which that broker really listens."""
        text: bytes = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster)
        pairs = (entry.rsplit(":", 1) for entry in text.decode().split(","))
        return {node: (host, int(port)) for node, (host, port) in enumerate(pairs, start=1)}

    def cap_version(self, api: str, highest: int) -> None:
        """Offer `api` (a key of API_KEYS) only in the versions 0 to `highest`."""
        if api not in API_KEYS:
            raise EmbeddedError(f"unknown API {api!r}; known: {', '.join(API_KEYS)}")
        self._check(
            self._lib.rd_kafka_mock_set_apiversion(self._cluster, API_KEYS[api], 0, highest),
            f"cap {api} at {highest}",
        )

    def create_topic(self, topic: str, partitions: int) -> list[Leader]:
        """Create a topic with all brokers as replicas; returns its partitions' leaders.

        Partition 0 is led by node 1, partition 1 by node 2, and so on round the brokers.
        """
        self._check(
            self._lib.rd_kafka_mock_topic_create(
                self._cluster, topic.encode(), partitions, self._brokers
            ),
            f"create topic {topic}",
        )
        # librdkafka has picked the first leaders, with epoch 0, at random: move all of them.
        for partition in range(partitions):
            self._leaders[topic, partition] = (0, 0)
            self.set_leader(topic, partition, partition % self._brokers + 1)
        return [self._leaders[topic, partition] for partition in range(partitions)]

    def set_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> Leader:
        """Make `node` the leader of a partition; returns it with its epoch, one above the last.

        Produce and Fetch obey at once. Metadata goes on giving the former leader for
        `metadata_lag` seconds, as it does on brokers that learn of a move from a controller.
        """
        former = self._leaders.get((topic, partition))
        if former is None:
            raise EmbeddedError(f"no partition {topic}-{partition}")
        self._await_lag()
        if metadata_lag:
            for _ in range(_STALE_ANSWERS):
                self._push_leader_answer(topic, partition, former)
        time.sleep(_SECONDS_BETWEEN_CALLS)
        self._check(
            self._lib.rd_kafka_mock_partition_set_leader(
                self._cluster, topic.encode(), partition, node
            ),
            f"make node {node} leader of {topic}-{partition}",
        )
        if metadata_lag:
            self._lag = threading.Timer(metadata_lag, self._use_up_answers, [topic])
            self._lag.start()
        self._leaders[topic, partition] = (node, former[1] + 1)
        return self._leaders[topic, partition]

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make `node` the leader of a partition, also of a topic that a client had created."""
        if (topic, partition) in self._leaders:
            self.set_leader(topic, partition, node)
            return
        time.sleep(_SECONDS_BETWEEN_CALLS)
        self._check(
            self._lib.rd_kafka_mock_partition_set_leader(
                self._cluster, topic.encode(), partition, node
            ),
            f"make node {node} leader of {topic}-{partition}",
        )

    def set_running(self, node: int, running: bool) -> None:
        """Have a broker take connections, or end all that it has and take none."""
        call = "rd_kafka_mock_broker_set_up" if running else "rd_kafka_mock_broker_set_down"
        doing = f"{'start' if running else 'stop'} node {node}"
        self._check(getattr(self._lib, call)(self._cluster, node), doing)

    def set_advertised(self, node: int, host: str, port: int) -> None:
        """Change the address that Metadata gives for `node`; it goes on listening where it is."""
        self._lib.rd_kafka_mock_broker_set_host_port(self._cluster, node, host.encode(), port)

    def request_counts(self) -> dict[str, int]:
        """API name (its key as text for an API not in API_KEYS) -> requests received so far."""
        size = c_size_t()
        requests = self._lib.rd_kafka_mock_get_requests(self._cluster, byref(size))
        keys = Counter(
            self._lib.rd_kafka_mock_request_api_key(requests[i]) for i in range(size.value)
        )
        self._lib.rd_kafka_mock_request_destroy_array(requests, size)
        return {_API_NAMES.get(key, str(key)): count for key, count in keys.items()}

    def close(self) -> None:
        """Stop the brokers and free everything; the object must not be used after it."""
        self._await_lag()
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)

    def _push_leader_answer(self, topic: str, partition: int, leader: Leader) -> None:
        # One later answer, of any broker, about this partition gives this leader instead.
        time.sleep(_SECONDS_BETWEEN_CALLS)
        self._check(
            self._lib.rd_kafka_mock_partition_push_leader_response(
                self._cluster, topic.encode(), partition, *leader
            ),
            f"push an answer for {topic}-{partition}",
        )

    def _await_lag(self) -> None:
        if self._lag is not None:
            self._lag.join()

    def _use_up_answers(self, topic: str) -> None:
        # librdkafka cannot take pushed answers back, but each time that a Metadata request names
        # the topic uses one up for each partition. So one request names it often enough.
        name = topic.encode()
        names = (struct.pack(">h", len(name)) + name) * _STALE_ANSWERS
        request = struct.pack(">hhihi", API_KEYS["Metadata"], 0, 0, -1, _STALE_ANSWERS) + names
        with socket.create_connection(self.addresses()[1]) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            connection.recv(1)  # The answer is ready, so the answers are gone.

    def _check(self, error: int, doing: str) -> None:
        if error:
            raise EmbeddedError(f"{doing}: {self._lib.rd_kafka_err2str(error).decode()}")


def _load_library() -> ctypes.CDLL:
    # A symbol looked up in a loaded library is searched in the libraries that it depends on too.
    # So the extension module leads to the very librdkafka that it uses, wherever a wheel, or a
    # build against the system's copy, has put it.
    lib = ctypes.CDLL(cimpl.__file__)
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise EmbeddedError(f"this librdkafka has no {name}") from None
        function.restype = result
        function.argtypes = arguments
    return lib
