"""Addresses: what is read, how it is written, what is refused."""

import pytest

from leader_hints.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9092", "127.0.0.1", 9092),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("broker-1.kafka_net.example.:9092", "broker-1.kafka_net.example.", 9092),
        ("LOCALHOST:65535", "localhost", 65535),
        ("[::1]:9092", "::1", 9092),
        ("[::]:9092", "::", 9092),
        ("[2001:DB8:0:0::1]:1", "2001:db8::1", 1),
        ("[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
    ],
)
def test_reads_host_and_port(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:9092", "[::1]:9092", "[::]:0", "broker-1:9092", "[fe80::1%eth0]:9092"]
)
def test_writes_what_it_read(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no port"),
        ("broker-1", "no port"),
        ("broker-1:", "the port must be"),
        ("broker-1:65536", "the port must be"),
        ("broker-1:-1", "the port must be"),
        ("broker-1:9o92", "the port must be"),
        ("broker-1:٩٠٩٢", "the port must be"),
        ("broker-1:000000009092", "the port must be"),
        ("::1:9092", "an IPv6 address stands in brackets"),
        ("[::1:9092", "an IPv6 address stands in brackets"),
        ("[broker-1]:9092", "no IPv6 address"),
        ("256.0.0.1:9092", "no IPv4 address"),
        ("127.1:9092", "no IPv4 address"),
        (":9092", "no host name"),
        ("bro ker:9092", "no host name"),
        ("broker-1\n:9092", "no host name"),
        ("-broker:9092", "no host name"),
        ("a..b:9092", "no host name"),
        ("PLAINTEXT://broker-1:9092", "no scheme"),
        ("broker-1:9092/", "no path"),
        ("user@broker-1:9092", "no host name"),
        ("brökér:9092", "no host name"),
        ("a" * 64 + ":9092", "no host name"),
        ("a." * 127 + ":9092", "no host name"),
    ],
)
def test_refuses_what_is_no_address(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Address.parse(text)
