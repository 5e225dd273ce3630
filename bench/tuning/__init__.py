"""Quality of the tuner. A landscape (a grid of settings) is measured once and searched many times."""
