"""Does ``compare`` tell the truth on this machine, and how many runs does it take to see a difference?

Tried, not assumed.
"""
