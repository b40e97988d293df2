"""Which brokers are of the cluster before which a virtual cluster is."""

from collections.abc import Collection, Sequence

from leader_hints.local.virtual_broker import Listed, VirtualBroker


class Membership:
    """``cluster``: the id of the cluster, ``None`` as long as no broker has given it.

    At the address of a broker that has gone a broker of another cluster may be by now. What that
    says would lead all listeners there, since its nodes have the same numbers. So the cluster stays
    the one that it was first, unless no broker of that can be reached, and most of those that are
    here are of another: it was recreated.
    """

    def __init__(self, cluster: str | None) -> None:
        self.cluster = cluster

    def is_of_another(self, broker: VirtualBroker) -> bool:
        """Whether a broker of another cluster is where a route leads."""
        return self.cluster is not None and broker.cluster not in (None, self.cluster)

    def some_answer(self, brokers: Collection[VirtualBroker]) -> bool:
        """Whether some broker of the cluster can be asked."""
        return any(broker.is_of(self.cluster) for broker in brokers)

    def lists(self, brokers: Collection[VirtualBroker]) -> Sequence[Listed]:
        """Return what the brokers of the cluster list that can be asked.

        Hundreds of them list each other, most of them in one list that they share.
        """
        lists = [broker.route.broker.endpoints for broker in self._members(brokers)]
        return [*{id(listed): listed for listed in lists}.values()]

    def _members(self, brokers: Collection[VirtualBroker]) -> Sequence[VirtualBroker]:
        members = [broker for broker in brokers if broker.is_of(self.cluster)]
        others: dict[str, list[VirtualBroker]] = {}
        for broker in brokers if not members else ():
            if broker.cluster is not None and not broker.left:
                others.setdefault(broker.cluster, []).append(broker)
        if not others:
            return members
        most = max(others, key=lambda cluster: len(others[cluster]))
        here = sum(not broker.left for broker in brokers)
        if self.cluster is not None and 2 * len(others[most]) <= here:
            return members
        self.cluster = most
        return others[most]
