"""Labs: disposable real file systems on this machine, started from distribution packages and removed completely.

``manager.py`` starts a lab with a mounted file system, and removes it again. Read it first. Each kind of lab has a
module; ``ha_*.py`` are the lab ha, a pair of servers with fail-over.
"""
