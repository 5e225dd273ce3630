"""Change settings (knobs) and cause faults (drills) on a live system, and always restore it.

Settings are tables in ``catalogue``. Each change and fault is recorded before it is made, so that it is undone even
after a crash. First files to read: ``knob_change.py`` and ``drill_run.py``.
"""
