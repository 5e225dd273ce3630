"""Start and supervise engines, and keep their samples in the store.

An engine is the process that does the I/O of a plan. A run is a directory that is consistent after any crash.
``node_facts.py`` compares nodes before a measurement. First files to read: ``engine.py`` and ``store.py``.
"""
