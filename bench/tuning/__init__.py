"""How good the tuner is: landscapes measured once, searched many times."""
