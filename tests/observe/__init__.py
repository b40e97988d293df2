"""Tests of what the proxy reports of itself."""
