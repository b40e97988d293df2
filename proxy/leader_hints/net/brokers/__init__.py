"""Connections to brokers: TCP, TLS, SASL, and the proxy's own requests.

Bugs about a broker that cannot be reached or authenticated with are here.

- connector: how a broker is connected to, with TLS and credentials or without; broker_stream: TCP;
  tls_stream: TLS of the proxy's own connections.
- name_look_ups: names of brokers are looked up in threads of their own.
- broker_connection: a connection of the proxy's own, one request at a time.
- reachability: which brokers take no connection of clients.
- sasl: the proxy's credentials; secret: where they are found.
- kerberos: tickets, and conversations by GSSAPI. token_endpoint: tokens for OAUTHBEARER.
- own_connections: knows connections of this process where they come out at its own listeners.
"""
