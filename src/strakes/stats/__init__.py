"""The statistics of strakes: contrasts, grades of answers, intervals, change points, level shifts, scalability.

The functions take arrays of samples, return estimates with intervals and grades, and are pure.
First file to read: ``grades.py``.
"""
