"""The studies, one module for each study (cells, questions, figures), and the execution of one cell's plan (a trial).

A study turns options into cells, each with a plan, and the measured cells into answers. ``measure_*.py`` carries out
one trial. ``neighbour.py`` protects other users of the file system during a trial. First file to read: ``study.py``.
"""
