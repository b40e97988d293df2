"""What the pipeline costs, on journals of ``leader-hints-report generate``.

Nouns: Trial (a piece of work and its time), Stage (how long its tasks took), Query (the same
question to Spark and to DuckDB), Figure (what was measured, and its target), Sizing (what a large
fleet needs by these figures).
"""
