"""Basis of all rooms: errors, units, safe files, processes, and the language of texts.

It imports no other room. ``files.py`` opens every file of a store, and follows no link. ``language.py`` looks up texts
in ``zh.po``. First file to read: ``errors.py``.
"""
