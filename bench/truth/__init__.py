"""Error rates of whole surveys on a simulated engine and clock, with known true rates."""
