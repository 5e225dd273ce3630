"""Fail-over of servers: plan a pair, check a configuration, predict the effect of failures. Read ``model.py`` first."""
