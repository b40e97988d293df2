"""Names of the clusters and client libraries that the tests of the real tier share."""

from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON

ZK_36 = "3.6-zk"
KRAFT_36 = "3.6-kraft"
ZK_35 = "3.5-zk"  # its brokers stand in no rack
ZK_34 = "3.4-zk"  # takes Fetch 13
ZK_28 = "2.8-zk"  # takes Fetch 12, and is the first with topic ids
ZK_24 = "2.4-zk"  # the oldest that is supported: takes Produce 8 and Fetch 11
SASL_24 = "2.4-zk-sasl"  # asks clients for SASL, and has ACLs
SASL_28 = "2.8-zk-sasl"
SASL_36 = "3.6-kraft-sasl"
# Ask for Kerberos, or for a token.
KERBEROS_24, KERBEROS_36 = "2.4-zk-kerberos", "3.6-kraft-kerberos"
TLS_36 = "3.6-zk-tls"  # asks clients for certificates
# Give hints themselves.
ZK_37 = "3.7-zk"
KRAFT_41 = "4.1-kraft"
# Their brokers advertise themselves, at addresses of their own.
APART_24, APART_36, APART_39 = "apart-2.4-zk", "apart-3.6-zk", "apart-3.9-kraft"
# Without a replica selector, and in no rack.
PLAIN_24, PLAIN_28 = "plain-2.4-zk", "plain-2.8-zk"
APART_SECURED = "apart-3.6-zk-sasl-ssl"  # ask for certificates and SASL, both at once

#: All of them, the longest first: some begin as others do.
CLUSTERS = sorted(
    {
        *(
            ZK_36,
            KRAFT_36,
            ZK_35,
            ZK_34,
            ZK_28,
            ZK_24,
            SASL_24,
            SASL_28,
            SASL_36,
            TLS_36,
            ZK_37,
            KRAFT_41,
        ),
        *(APART_24, APART_36, APART_39, APART_SECURED, PLAIN_24, PLAIN_28),
        *(KERBEROS_24, KERBEROS_36),
    },
    key=len,
    reverse=True,
)

JAVA = "java"
OLD_JAVA = "java-3.5"  # from before KIP-951: asks for Produce 9 and Fetch 15 at most
#: As the other, but retries at once when Metadata names a new leader (KAFKA-15415).
JAVA_36 = "java-3.6"
JAVA_41 = "java-4.1"

__all__ = [
    "APART_24",
    "APART_36",
    "APART_39",
    "APART_SECURED",
    "CLUSTERS",
    "CONFLUENT",
    "JAVA",
    "JAVA_36",
    "JAVA_41",
    "KAFKA_PYTHON",
    "KERBEROS_24",
    "KERBEROS_36",
    "KRAFT_36",
    "KRAFT_41",
    "OLD_JAVA",
    "PLAIN_24",
    "PLAIN_28",
    "SASL_24",
    "SASL_28",
    "SASL_36",
    "TLS_36",
    "ZK_24",
    "ZK_28",
    "ZK_34",
    "ZK_35",
    "ZK_36",
    "ZK_37",
]
