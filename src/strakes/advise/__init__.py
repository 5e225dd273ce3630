"""From what an application does, and what was measured, to settings that can be pasted."""
