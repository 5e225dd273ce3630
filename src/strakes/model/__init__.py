"""Values that the packages exchange: plans for the engine, samples, findings, and the tables of published studies.

All values are immutable. Most can be written as JSON. The engine reads plans; the store keeps all other values.
First files to read: ``plan.py`` for measurements, ``portrait.py`` for findings.
"""
