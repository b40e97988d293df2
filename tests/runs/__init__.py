"""What users run besides client libraries alone, on real brokers: whole programs and networks.

Nouns:

- Place: a cluster that runs, and the way to it: through proxies, or direct.
- Run: something that users do, with the brokers that it is done on; its figures are counts.
- Result: what came of a run at one place; kept as JSON under tests/runs/results.

``python -m tests.runs --help`` says how to do them; the results are in docs/compatibility.md.
``tests/real/test_runs.py`` does some of them.
"""
