"""Simulations that prove the statistics: ``python -m bench.simulate`` writes the tables of docs/statistics.md."""
