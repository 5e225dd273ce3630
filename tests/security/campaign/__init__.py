"""One seed draws an act of strakes, where it is done, and a schedule of faults; afterwards the promises of docs/security.md are checked.

By hand, in ``tests``: ``python -m security.campaign FIRST COUNT``. A seed that fails is printed, and draws the same again.
"""
