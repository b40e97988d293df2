"""Mutated requests and responses against links of all kinds, and a referee.

``python -m tests.fuzz --messages 1000000 --seed 1`` makes cases from seeds, mutates them and has
each judged. A case that breaks a rule is made small and written to ``build/fuzz``.

Nouns:

- Case: a link of some kind, and the bytes that its two sides send in turn.
- Mutation: something that is done to frames or to a stream of them.
- Way: one direction of a link, what went in and what came out, compared frame by frame.
- Referee: says what a link may do to what went through it, reading frames by kio's schemas only.
"""
