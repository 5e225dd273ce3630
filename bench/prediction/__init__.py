"""How good forecasts are: yardsticks that were fixed before the data were looked at, and the page they write."""
