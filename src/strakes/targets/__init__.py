"""Access to the supported file systems (facts, layouts, counters), and to the work directories of strakes.

``registry.detect`` returns the :class:`~strakes.targets.target.Target` for the file system of a directory.
strakes writes only to directories that ``workspace.py`` creates. Read ``target.py`` first.
"""
