"""Present a portrait (the results of a run) as a document, a one-screen summary, an HTML page or a guide.

Every function takes a portrait and returns text, without side effects. First file to read: ``summary.py``.
"""
