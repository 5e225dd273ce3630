"""Present the results of a run (its portrait) as a one-screen summary, an HTML page, a guide, or figures for papers.

Only ``static_figure.py`` writes files; all others return text. First file to read: ``summary.py``.
"""
