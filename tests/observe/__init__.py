"""Tests of what the proxy tells of itself."""
