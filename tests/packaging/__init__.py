"""What users install: wheel and sdist, in environments of their own, on each Python there is."""
