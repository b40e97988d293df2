"""Tests of the settings' model and the example file."""
