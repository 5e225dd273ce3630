"""The statistics of strakes: contrasts, grades of answers, intervals, change points, level shifts, scalability.

Arrays of samples enter; estimates with intervals and grades leave. All functions are pure.
First file to read: ``grades.py``.
"""
