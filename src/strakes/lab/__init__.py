"""Disposable real file systems on this machine: started from distribution packages, removed without a trace.

Options enter; a mounted file system leaves, and its undo. One module for each kind, ``ha_*.py`` for pairs of servers.
First file to read: ``manager.py``.
"""
