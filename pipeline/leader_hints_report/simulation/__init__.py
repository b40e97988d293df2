"""What an event such as a rolling restart will cost a fleet's clients, in virtual time.

Bugs about a forecast that is wrong, slow, or refused without a reason are here.

- fleet: the YAML file: brokers, topics, clients, event; parameters: the model's numbers, with
  ranges and sources; clients: the rules of each client software; arms: the modes that are compared.
- journal: a fleet and an event from a journal, and what a file says besides.
- layout: a fleet as arrays; arrays: their types; moves: an event as batches of leader moves.
- propagation: when brokers learn of a batch; finding: how a client finds the next leader; batch:
  what a batch costs all clients; core_rules: the proxy's own rules on a sample of it.
- load: requests by broker, of clients and of proxies.
- latencies: all records in closed form; simulate: one simulation; figures: of one and of many.
- sweep: seeds times arms, here or on Spark; pause: the shortest one that keeps a limit.
- document: tables and JSON; page and plots: the same as HTML.

Nouns:

- Stream: clients alike in one topic. Pair: one client at one partition that moved.
- Batch: moves that the controller decides together; Spread: when each broker learns of them.
- Stall: from a pair's first refused record until the next leader served it.
- Arm: a mode, with or without a changed setting.

No record is simulated by itself: a stall of length d delays those that come while it lasts, one
that comes t before its end by t. Everything is drawn from the seed; no clock is read.

Only core_rules and load.proxy_questions import the proxy.
"""
