"""Metadata that survives: plan, check and rehearse the fail-over of a pair of servers, and read what a recovery was like."""
