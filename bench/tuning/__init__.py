"""Quality of the tuner: landscapes are measured once and searched many times."""
