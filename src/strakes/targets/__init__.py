"""The measured file systems, one module or a group of modules for each: facts, layouts, counters, workspaces.

``registry.detect`` returns the :class:`~strakes.targets.target.Target` of a directory, which describes its file system.
strakes writes only to directories that ``workspace.py`` creates. Read ``target.py`` first.
"""
