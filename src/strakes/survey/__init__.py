"""Surveys: run studies within a budget, analyse the samples, compare runs and follow them over months.

Studies enter; a portrait with graded answers leaves. ``analysis_*.py``, ``compare_*.py`` and ``history_*.py`` work on
stored runs. First files to read: ``runner.py`` and ``analysis_build.py``.
"""
