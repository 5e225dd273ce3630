"""Runs: engines are started and supervised, and their samples are kept in the store.

A plan and a launcher enter; samples leave. Each run is one directory, consistent after any crash. ``node_facts.py``
compares nodes before a measurement. First files to read: ``engine.py`` and ``store.py``.
"""
