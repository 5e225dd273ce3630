"""The measured file systems: facts, layouts, counters, and the workspace, the directory in which strakes works."""
