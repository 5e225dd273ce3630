"""A file system watched for years: what changed, when, where, why, and how sure that is."""
