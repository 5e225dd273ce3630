"""What the published studies measured: their tables and figures, each said once."""
