"""Change settings (knobs) of a live system, or cause faults in it (drills), and always restore the system.

Settings are tables in ``catalogue``. Each change and fault is recorded before it is made, so that it is undone even
after a crash. First files to read: ``knob_change.py`` and ``drill_run.py``.
"""
