"""Forecasts of large systems from runs on small ones, sealed until the large system is measured.

Stored runs enter (``gather.py``), forecasts with intervals leave (``forecasts.py``). First file to read: ``model.py``.
"""
