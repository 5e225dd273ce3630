"""Readers of other forms of a Pacemaker configuration; each returns a CIB."""
