"""Present a portrait (the results of a run) as a JSON document, a one-screen summary, an HTML page or a guide.

Every function takes a portrait and returns text, without side effects. First file to read: ``summary.py``.
"""
