"""Which protocol versions a client is offered and what the broker is sent instead.

Bugs about a version that is offered or sent wrongly, or an address that is not rewritten, are here.

- plan: the version plan, a table; client_capabilities: what each client does with a hint, a table.
- request_policy: what was decided for the requests of one API and version on one link, by
  core/link/link_state.
- asked_versions: which versions the clients of a route ask.
- address_rewriting: where clients of a virtual cluster find each broker, also by hints;
  core/responses/addresses puts it into responses. broker_ports: the ports of its listeners.
"""
