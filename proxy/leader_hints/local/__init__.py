"""The virtual cluster of `leader-hints local`: a listener for each broker of a real cluster.

Bugs about listeners that come or go wrongly, or brokers that are not found, are here.

- virtual_cluster: the listeners; virtual_broker: one broker; membership: which are of the cluster;
  host: what the process around them does. discovery: finds the brokers.
- mock_pages: the admin server's pages that change a mock cluster.
"""
