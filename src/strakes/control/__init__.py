"""What is changed on a live system, and always restored: settings (knobs) and faults (drills).

Settings are tables in ``catalogue``; each change and fault is recorded before it is made, so that it is undone even
after a crash. First files to read: ``knob_change.py`` and ``drill_run.py``.
"""
