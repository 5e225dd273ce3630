"""Pure statistics over stored samples: medians, intervals, stopping, contrasts, trends, and the warnings they give rise to."""
