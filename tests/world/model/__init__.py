"""The model of a Kafka cluster: what is true, what each broker believes of it, and what it answers.

It is pure: no bytes, no clock, no proxy. ``truth``: what the controller has decided, in order;
``broker``: what one broker knows of that and answers by it; ``releases``: what each release takes.
"""
