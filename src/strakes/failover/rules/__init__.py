"""Rules about mistakes in clusters, each with its reason and a public source."""
