"""Disposable real file systems on this machine: started from distribution packages, removed without a trace.

``manager.py`` takes options, starts a lab with a mounted file system, and removes it again. Read it first.
Each kind of lab has a module; ``ha_*.py`` are the pair of servers.
"""
