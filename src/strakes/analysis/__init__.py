"""Turn a stored run into results, warnings and findings. Pure."""
