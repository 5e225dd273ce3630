"""The studies, one module for each: factors, cells, questions, figures; and how one cell is measured.

Options enter; plans of cells leave, and answers once they are measured. ``measure_*.py`` carries out one trial,
``neighbour*.py`` protects other users of the file system meanwhile. First file to read: ``study.py``.
"""
