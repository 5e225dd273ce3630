"""Error rates of whole surveys with a simulated engine and clock, whose true rates are known."""
