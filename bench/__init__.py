"""How fast strakes itself is, beside the floor of the machine and its peers: ``python -m bench``."""
