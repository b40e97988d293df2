"""The report: a fleet's tables as a page for people and as data for programs.

Bugs about the page, its figures, or its JSON and CSV are here; a wrong number is a bug of tables.

- listings: the tables of the report: their columns, what they mean, and how many rows they have.
- gathering: reads the rows from the pipeline's tables, of a period of days. costs: what a day
  costs, and what hints and upgrades would gain; savings: what hints saved; zones: bytes between
  racks. Only these know Spark.
- upgrades: which versions use hints; readiness: what becomes of clients at Kafka 4, by the proxy's
  own rules; advice: what happened, what it cost, what to do first.
- figures: which numbers are drawn; drawing: one figure as SVG, in the page's colours.
- page: one HTML document that needs nothing else; format: values as people read them.
- files: the page, the JSON and the CSV, all of the same numbers.
"""
