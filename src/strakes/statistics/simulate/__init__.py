"""Simulations that prove the statistics: ``python -m strakes.statistics.simulate`` writes the tables of docs/statistics.md."""
