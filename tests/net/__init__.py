"""The Trio tier: sockets and tasks, on real socket pairs, memory streams and a mock clock.

Nouns:

- messages: requests and responses of the protocol, packed by hand, sharing no code with the proxy.
- Rig: a Pump whose steps the test makes itself, so that every chunk arrives alone.
- Ends: the two far ends of a link.
- FakeBroker: answers from a script what real brokers cannot be made to answer.
- HttpEvents: how much of HTTP is taken in one step, and in one round of the event loop.
- FakeNetwork: addresses with fake brokers behind them, over memory streams.
"""
