"""The report: a fleet's tables as a page for people and as data for programs.

Nouns:

- Listing: a table of the report: its columns, what they mean, and how many rows it has at most.
- Numbers: the rows of all listings; page, JSON and CSV are made of them and nothing else.
- Gathering: how the rows come out of the pipeline's tables, on Spark.
- Drawing: one figure, as SVG, in a wide and a narrow form. Its colours are the page's.
- Page: one HTML document that needs nothing besides itself.

Only :mod:`leader_hints_report.report.gathering` knows Spark.
"""
