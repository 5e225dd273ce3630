"""Histories of a repeated measurement: level shifts of its figures, with time and size."""
