"""Foundations of all other packages: errors, units, safe access to files, processes, and translation.

This package imports no other one. First file to read: ``errors.py``.
"""
