"""Randomised fault injection: each seed draws a command, a file system and a schedule of faults.

Afterwards the promises of docs/security.md are checked. By hand, in ``tests``: ``python -m security.campaign FIRST
[COUNT]``. A failing seed is printed, and repeats the same draws.
"""
