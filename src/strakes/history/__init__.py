"""The same measurement over months: which figures changed their level, when, and by how much."""
