"""Tests of the settings: each group, the rules across groups, and the example file."""
