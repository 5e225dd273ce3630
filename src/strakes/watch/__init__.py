"""Continuous watch of a file system: events with time, place, cause and confidence."""
