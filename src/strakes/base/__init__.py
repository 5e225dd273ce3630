"""Foundations of all other packages: errors, units, safe files, processes, and the language of texts.

This package imports no other one. ``files.py`` opens all files of a store and never follows a symbolic link there.
``language.py`` looks up translations in ``zh.po``. First file to read: ``errors.py``.
"""
