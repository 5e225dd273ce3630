"""Quality of `strakes watch`: changes found in a published year of benchmarks, and in composed days."""
