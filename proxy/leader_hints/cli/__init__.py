"""The command line.

Bugs about a command, a flag, or a setting that is refused wrongly are here.

- entry: what is done before anything is imported; main: the commands; local, switch, readiness,
  fault, mock, conformance: the commands of these names; admin_client: requests to running proxies.
- worker: a worker process, which `run` starts.
- entrance: flags that say how brokers are connected to; options: flags that several commands have.
- sources: settings of the command line, the environment and the file; templates: `${NAME}` in them;
  refusals: one line that says why a setting is not taken.
"""
