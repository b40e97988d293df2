"""What `leader-hints check` finds out about routes, brokers and the host.

Bugs about a finding that is wrong, missing or unclear are here.

- facts: what the probes found; findings: the table of all findings.
- rules: from facts to findings, by broker_rules (the route's broker), listening_rules (the address
  that the proxy listens on), advertised_rules (where clients are sent) and host_rules.
- client_support: what each kind of client gets on a route. All of these are pure.
- route_probe: gathers the facts of all routes; endpoint_probe: what answers at one address.
- self_connection: which connections reach a route's own address, while no proxy runs there;
  route_watch: the same check in `run`, repeatedly; host: facts about this machine.
- report: what is printed.
- upgrade_rules: what becomes of clients when brokers are upgraded, or they themselves, for
  `leader-hints readiness`; asked_journals: what journals say of clients.
"""
