"""Tests of the command line: real processes where exit codes and streams matter."""
