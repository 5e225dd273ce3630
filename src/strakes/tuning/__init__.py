"""Advice for one application: settings chosen from measurements, found by a search, or tested against needs.

Descriptions of applications and stored runs enter; settings with expected gains leave. ``advise_*.py`` chooses,
``tune_*.py`` searches, ``accept_*.py`` tests. First files to read: ``advise_choose.py`` and ``run.py``.
"""
