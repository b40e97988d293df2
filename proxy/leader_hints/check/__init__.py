"""What `leader-hints check` finds out about routes, brokers and the host.

Bugs about a finding that is wrong, missing or unclear are here.

- rules: from facts to findings, one rule for each matter; findings: the table of all of them.
- client_support: what each kind of client gets on a route.
- route_probe: gathers the facts of all routes; endpoint_probe: what answers at one address;
  self_connection: which connections come out at a route's own address; host: this machine.
- report: what is printed.

The first two, and client_support, are pure.
"""
