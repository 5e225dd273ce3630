"""What a run found, as frozen values: portrait, results, places."""
