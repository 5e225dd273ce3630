"""Studies of a file system (one module for each study), and the execution of their measurements.

A study lists the combinations of settings to measure (cells), and derives answers from the results. ``measure_*.py``
run the plan of a cell (a trial). ``neighbour.py`` protects other users meanwhile. First file to read: ``study.py``.
"""
