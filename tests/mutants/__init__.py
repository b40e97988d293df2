"""Mutants: defects that are planted in the product on purpose, which tests and worlds must find.

- mutants.toml: the list; table: reads it, and applies one to a module's text.
- plant: runs a module, such as pytest or tests.world, with a mutant in place.
- judging: what finds a mutant; results: what was found so far, and the table of it.
"""
