"""Labs: disposable real file systems on this machine, started from distribution packages and removed completely.

``manager.py`` starts and removes a lab. Each kind of lab has a module; ``ha_*.py`` are a fail-over pair of servers.
"""
