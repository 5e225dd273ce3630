"""One module per format that a run goes out in."""
