"""Acceptance: a list of stated needs, each answered from measurements, or said to be unknown."""
