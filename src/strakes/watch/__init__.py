"""Continuous watch of a file system: events with time, place, cause and confidence.

Live or recorded counters enter; events, metrics and a page leave. First file to read: ``watch.py``.
"""
