"""Decisions: what passes, what is changed, which hint is given and when; pure.

- link: the bytes of one client connection; versions: which protocol versions are offered and sent.
- hints: which hint an error gets, and when; cluster: what is known of leaders and brokers.
- sessions: fetch sessions, and Fetch by topic id in front of brokers that know names only.
- route: a listening address and the one broker behind it; mode: what a route does about hints.
- events: what happened, as data; admission: whether one more client is let in.

Nothing here reads a clock of the machine: the time is an argument, in seconds of a Clock that never
goes back. LatencySampler, Recovery and LeaderView are given that Clock itself, to ask it only where
something is sampled, awaited or has moved.
"""
