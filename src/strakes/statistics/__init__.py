"""Pure statistics over stored samples.

Medians, intervals, contrasts, grades of answers and claims, change points, level shifts, and scalability.
"""
