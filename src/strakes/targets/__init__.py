"""The measured file systems, one module or a group of modules for each: facts, layouts, counters, workspaces.

A directory enters; a :class:`~strakes.targets.target.Target` leaves, which knows what its file system can do.
Everything that is written to a target is written by ``workspace.py``. First file to read: ``target.py``.
"""
