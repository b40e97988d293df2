"""What the stall benchmark compares, and what it aims at."""

from bench.stall import Arm

OFF = Arm("hints off", "3.6.2", "zk", "off")
ON = Arm("hints on", "3.6.2", "zk", "on")
NATIVE = Arm("native 3.7, no proxy", "3.7.2", "zk", None)
#: Measured in alternating rounds; the targets hold for these.
ZOOKEEPER = (OFF, ON, NATIVE)
#: The same targets in front of older brokers, whose requests and responses are recoded.
LEGACY = tuple(
    (
        Arm(f"hints off, {version}", version, "zk", "off"),
        Arm(f"hints on, {version}", version, "zk", "on"),
        NATIVE,
    )
    for version in ("2.8.2", "2.4.1")
)
#: Most that the median with hints may be of the median without, and of the native one.
MOST_OF_OFF = 0.4
MOST_OF_NATIVE = 1.5
#: Least share of errors that get their hint.
LEAST_HINTED = 0.98

#: Partitions beside the one that moves, whose own latencies are compared.
BYSTANDERS = 4
