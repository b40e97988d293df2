"""The subcommands of `leader-hints-report`.

One module for each, named as it; its ``command`` is a click command. Spark is imported when one
begins to work, so that --help answers at once.
"""
