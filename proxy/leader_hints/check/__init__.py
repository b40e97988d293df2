"""What `leader-hints check` finds out about routes, brokers and the host.

Bugs about a finding that is wrong, missing or unclear are here.

- findings: the table of all findings; rules: from facts to findings, one rule for each matter;
  client_support: what each kind of client gets on a route. These three are pure.
- route_probe: gathers the facts of all routes; endpoint_probe: what answers at one address.
- self_connection: which connections come out at a route's own address, while no proxy runs there;
  route_watch: the same question in `run`, again and again; host: what this machine says of itself.
- report: what is printed.
"""
