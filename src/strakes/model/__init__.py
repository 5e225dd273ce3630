"""Values that all packages exchange: engine plans, samples, findings and tables of published studies.

All values are immutable, and most have a JSON form. The engine reads plans, and the store keeps the other values. First
files to read: ``plan.py`` for measurements, ``portrait.py`` for findings.
"""
