"""The demo's pure parts; the demo as a whole is tested in tests/mock."""
