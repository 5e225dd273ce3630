"""Values that all packages exchange: engine plans, samples, findings and tables of published studies.

All values are immutable, and most have a JSON form. The engine reads plans, the store keeps the rest. First files to
read: ``plan.py`` for measurements, ``portrait.py`` for findings.
"""
