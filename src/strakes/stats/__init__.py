"""The statistics of strakes: contrasts, grades of answers, intervals, change points, level shifts, scalability.

The functions are pure: they take arrays of samples, and return estimates with intervals and grades.
First file to read: ``grades.py``.
"""
