"""Fail-over of a pair of servers: plan it, check it, rehearse it, and read how a recovery went."""
