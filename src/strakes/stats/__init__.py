"""Statistics: comparisons of settings, grades of answers, intervals, change points, scalability.

All functions are pure. First file to read: ``grades.py``.
"""
