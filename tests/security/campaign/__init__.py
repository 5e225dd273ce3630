"""Randomised fault injection: each seed draws a command, a file system and faults at random times.

Afterwards the promises of docs/security.md are checked. A failing seed is printed; ``python -m security.campaign SEED``
in ``tests`` repeats it.
"""
