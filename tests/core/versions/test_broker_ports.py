"""The ports of a virtual cluster's listeners."""

from leader_hints.core.versions.broker_ports import BrokerPorts


def test_ports_follow_from_the_base_unless_given() -> None:
    ports = BrokerPorts(19092, {7: 9})
    assert [ports.port(node) for node in (0, 1, 3, 7)] == [19093, 19094, 19096, 9]
    assert ports.port(46442) == 65535
    assert ports.port(46443) == 0


def test_a_node_without_a_port_gets_the_reason_and_the_way_out() -> None:
    ports = BrokerPorts(19092, {7: 19096})
    assert ports.port(3) == 0
    assert ports.lack(3) == (
        "node 3 would listen on port 19096, which another node has; give --port 3=PORT"
    )
    assert ports.lack(46443) == (
        "node 46443 would listen on port 65536, which is above 65535; give --port 46443=PORT"
    )
