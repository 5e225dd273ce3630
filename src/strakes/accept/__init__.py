"""Acceptance test: check a list of needs against measurements."""
