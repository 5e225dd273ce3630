"""Fail-over of servers: plan a pair, check its configuration, rehearse its failures. Read ``model.py`` first."""
