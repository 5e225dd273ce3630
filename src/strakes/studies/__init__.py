"""The studies, one module for each: factors, cells, questions, figures; and the measurement of one cell.

A study turns options into plans of cells, and the measured cells into answers. ``measure_*.py`` carries out one trial,
``neighbour*.py`` protects other users of the file system during the trial. First file to read: ``study.py``.
"""
