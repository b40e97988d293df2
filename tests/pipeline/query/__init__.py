"""Tests of leader_hints_report.query."""
