"""Quality of forecasts, by measures that were fixed before the data were seen, and the page on it."""
