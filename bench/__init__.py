"""Speed of strakes itself, compared with a minimal C program and with other benchmarks: ``python -m bench``."""
