"""The model of a Kafka cluster: what is true, what each broker believes of it, and what it answers.

It is pure: no bytes, no clock, no proxy. ``truth``: what the controller has decided, in order;
``learning``: in which order a broker learns of that; ``broker``: what it answers by it;
``sessions``: what of a Fetch it remembers; ``releases``: what each release takes.
"""
