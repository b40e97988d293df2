"""The subcommands of `leader-hints-report`.

Bugs about an option, a refusal or an exit code are here.

- batch, stream, generate, html, kip951, query, simulate: one subcommand each; ``command`` is a
  click command.

Spark is imported when a command starts to work, so that --help answers immediately.
"""
