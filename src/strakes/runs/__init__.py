"""Start and supervise engines, and keep their samples in the store.

The input is a plan and a launcher, the output is samples. Each run is one directory, consistent after any crash.
``node_facts.py`` compares nodes before a measurement. First files to read: ``engine.py`` and ``store.py``.
"""
