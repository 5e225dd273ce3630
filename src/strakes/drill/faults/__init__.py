"""Faults, one kind of system in each module."""
