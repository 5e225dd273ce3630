"""Labs: disposable real file systems on this machine, started from distribution packages and removed completely.

``manager.py`` starts and removes a lab. Each kind of lab has a module. The modules ``ha_*.py`` are for a pair of
servers with fail-over.
"""
