"""The virtual cluster of `leader-hints local`: a listener for each broker of a real cluster.

Bugs about listeners that come or go wrongly, or brokers that are not found, are here.

- virtual_cluster: the listeners; discovery: finds the brokers at the start.
- mock_pages: the admin server's pages that change a mock cluster.
"""
