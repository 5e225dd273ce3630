"""A portrait as a document, a one-screen summary, an HTML page or a guide.

A portrait enters; text leaves. All functions are pure. First file to read: ``summary.py``.
"""
