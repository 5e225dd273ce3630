"""The measured file systems: facts, layouts, counters, and workspaces on them."""
