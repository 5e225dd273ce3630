"""Comparison of runs: the cells that did the same work, their ratios, and verdicts."""
