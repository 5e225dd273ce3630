"""Measurements handed to a batch system, and what became of them."""
