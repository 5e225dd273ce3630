"""Quality of `strakes watch`: planted changes that it finds in a published year of benchmarks and in composed days."""
