"""How good forecasts are, on systems that others measured: the yardstick, fixed before the data were looked at, and the page it writes."""
