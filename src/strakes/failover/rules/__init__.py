"""What has gone wrong for others: one rule for each mistake, with its reason and where it happened in public."""
