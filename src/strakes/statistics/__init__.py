"""Pure statistics over stored samples.

Medians, intervals, stopping, contrasts, trends, and the warnings they give rise to.
"""
