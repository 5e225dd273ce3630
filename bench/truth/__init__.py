"""Error rates of whole surveys on a simulated engine and clock, with planted truths."""
