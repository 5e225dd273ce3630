"""Forecasts of what cannot be measured here: from small to large, with what saturates first and how sure that is."""
