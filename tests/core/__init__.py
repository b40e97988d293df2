"""The pure tier: decisions, with bytes made by kio and a clock that is a number."""
