"""Studies of a file system, one module each, and the execution of a cell's plan (a trial).

A study turns options into cells, each with a plan, and measured cells into answers. ``measure_*.py`` execute a trial.
``neighbour.py`` protects other users of the file system during a trial. First file to read: ``study.py``.
"""
