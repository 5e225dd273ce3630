"""Monitor a file system continuously, and report events with time, place, cause and confidence.

Input: live or recorded counters. Output: events, metrics and an HTML page. First file to read: ``watch.py``.
"""
