"""What `leader-hints check` finds out about routes, brokers and the host.

Bugs about a finding that is wrong, missing or unclear are here.

- facts: what the probes found; rules: from facts to findings; findings: the table of all findings;
  client_support: what each kind of client gets on a route. These four are pure.
- route_probe: gathers the facts of all routes; endpoint_probe: what answers at one address.
- self_connection: which connections reach a route's own address, while no proxy runs there;
  route_watch: the same check in `run`, repeatedly; host: facts about this machine.
- report: what is printed.
"""
