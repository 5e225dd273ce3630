"""Studies of a file system, one module each, and the execution of their measurements.

A study lists cells to measure, each with a plan, and derives answers from the results. ``measure_*.py`` execute the
plan of a cell (a trial). ``neighbour.py`` protects other users meanwhile. First file to read: ``study.py``.
"""
