"""Values that the rooms exchange: plans for the engine, samples, findings, and the tables of published studies.

All of them are immutable; most have a form in JSON. The engine reads plans, the store keeps the rest.
First files to read: ``plan.py`` for measurements, ``portrait.py`` for findings.
"""
