"""Foundations of all other packages: errors, units, safe access to files, processes, and translation.

It imports no other package of strakes. First file to read: ``errors.py``.
"""
