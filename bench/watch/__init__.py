"""Quality of `strakes watch`: changes that it finds in a published year of benchmarks and in composed days."""
