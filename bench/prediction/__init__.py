"""Quality of forecasts, by measures that were fixed before the data were seen; and the page docs/prediction.md."""
