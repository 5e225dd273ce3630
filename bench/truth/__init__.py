"""Error rates of whole surveys with a simulated clock and a simulated engine, whose true rates are known."""
