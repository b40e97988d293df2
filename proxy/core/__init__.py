"""Decisions: what passes, what is changed, which hint is given and when; pure.

Nouns:

- Mode: whether a route gives hints, only counts them, or is a plain relay.
- Plan: the versions that a route raises and what is sent to the broker for each.
- Route: a listening address and the one broker behind it, and what is known about both.
- Link: one client connection joined to its own connection to the broker. Its two Flows are
  byte machines: RequestFlow upwards, ResponseFlow downwards.
- Handling: what a link does with all requests of one API and version.
- Exchange: one request that awaits its response on a link.
- made_up_id: a topic's id where brokers have none; Agreement: whether all brokers of a cluster
  give it.
- UnknownIds: topic ids that clients use and that have no names; when brokers are asked for them.
- FetchSessions: the leader epochs that the partitions of a fetch session were last asked with.
- LeaderView: who leads which partition of a cluster since which epoch, a Leader; Doubts: of which
  partitions brokers contradict that.
- Held: an error response that is kept back; Desk: decides when it goes on and with which hints;
  Lateness: how late it is asked to.
- Candidates: which brokers are worth asking whether they lead a partition.
- RefreshRate: how often brokers are asked on demand; RefreshShare: for how much at once.
- Reason: why an error got no hint.
- Witness: sees what a response answers that goes on at once.
- Recovery: which clients wait for a partition, and when it answers them again.
- Budget: the bytes that may be kept back in all.
- LatencySampler: takes the time of some exchanges, where that is wanted.
- RouteFacts, MachineFacts: what a checkup found; Finding: what is right, or wrong, and its remedy;
  Outlook: what a kind of client gets on a route.
- AddressBook: where clients find each broker of a virtual cluster, and what they are offered.
- Fault: something that is done on purpose to what passes; Scenario: faults by the clock;
  SessionPartitions: what fetch sessions ask about, for faults that choose topics.
- Seen: a message that was seen; Trait: one thing that a client does with hints.
- Tally: counts of what passed; Event: something worth a line in a log.

Nothing here reads a clock of the machine: the time is an argument, in seconds of a Clock that never
goes back. LatencySampler, Recovery, LeaderView and Doubts are given that Clock itself, to ask it
only where something is sampled, awaited, in doubt or has moved.
"""
