"""Forecasts of large systems from runs on small ones.

``gather.py`` reads stored runs, and ``forecasts.py`` makes forecasts with intervals. First file to read: ``model.py``.
"""
