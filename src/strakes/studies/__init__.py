"""The catalogue of studies: one module each, one line in the registry."""
