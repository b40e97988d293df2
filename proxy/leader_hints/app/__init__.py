"""One process: composition and life cycle; the parts themselves decide everything else.

Bugs about the start and end of a process, and about how its parts are joined, are here.

- process: start, signals, end; drain: how links come to rest at the end; parts: what a process
  consists of; part_settings: settings as they are given to the parts.
- fixed_routes, virtual_routes: where the routes come from, the settings or a discovered cluster;
  route_table: all routes of the process; listeners: their open listeners.
- settings_reload: settings that are taken again at SIGHUP.
- joining: from an accepted client to a link; certificate_watch: renewed TLS files.
- observers: who observes events, and how failures are reported; periodic: timers and summaries.
- takeover: from the process before this one, and by the next; replacement: starts the next one.
- start_check: what `run` would refuse, found by `config check`.
- switch_file: what the kill switch has set, for the next process.
- admin_view: what the admin server's pages show and change.

Its folder: workers (more processes that serve links).
"""

from leader_hints.app.process import hold, run, serve

__all__ = ["hold", "run", "serve"]
