"""Which protocol versions a client is offered and what the broker is sent instead.

Bugs about a version that is offered wrongly, or an address that is not rewritten, are here.

- plan: the version plan, a table; client_capabilities: what each client can do with a hint, a
  table.
- request_policy: what is done with the requests of one API and version on one link.
- address_rewriting: where clients of a virtual cluster find each broker.
"""
