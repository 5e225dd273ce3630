"""Speed of strakes itself, compared with a minimal C program and with its peers: ``python -m bench``."""
