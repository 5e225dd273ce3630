"""Other tools: read their results, write their formats, run their command lines."""
