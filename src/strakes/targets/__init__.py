"""The supported file systems, with one or several modules for each: facts, layouts, counters and workspaces.

``registry.detect`` returns the :class:`~strakes.targets.target.Target` of a directory, which describes its file system.
strakes writes only to directories that ``workspace.py`` creates. Read ``target.py`` first.
"""
