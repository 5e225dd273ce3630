"""Continuous watch of a file system: events with time, place, cause and confidence.

Input: live or recorded counters. Output: events, metrics and an HTML page. First file to read: ``watch.py``.
"""
