"""Portraits of stored runs of all kinds."""
